// Sends or receives one element of a datatype again and again, always in the same situation, so that bench/breakdown can show what
// that executes. Rank 0 is the one that is counted; what rank 1 does is timed through a file that both map, as in calls.c.
//
//   typed CALL WAY EVENTS COUNT TYPE FILE
//
//   CALL     send        the receive has been posted, and everything that was sent before has arrived
//            recv        the message has been sent, as far as it leaves without an answer
//   WAY      typed       with the datatype
//            by-hand     packed and unpacked by a loop, and sent as consecutive bytes; data without gaps is sent from where it is
//   EVENTS   none        for callgrind, which counts inside MPI_Send, MPI_Recv, pack_by_hand and unpack_by_hand
//            hardware, software   the counters of counters.h around each call, printed at the end
//   TYPE     words in prefix order, as driver/type_text.py writes them: "vector 8 1 16 MPI_DOUBLE"
//
// The loops by hand are those of layouts.h. Where the blocks lie is found by packing: no second description of the datatype is
// needed, and so no loop can disagree with it.
#include "counters.h"
#include "layouts.h"
#include <fcntl.h>
#include <near.h>
#include <stdatomic.h>

struct steps {
  _Alignas(64) _Atomic long counted; // how often rank 0 has done its part
  _Alignas(64) _Atomic long partner; // how often rank 1 has
};

enum { most_paths = 16 }; // by which a message may travel

static struct steps* steps;
static struct layout layout;
static MPI_Aint lowest;              // the first byte of the data, from the address that a call is given
static char *out, *in;               // where the data lies, with its gaps
static char *packed_out, *packed_in; // as consecutive bytes
static struct counter* counters;     // NULL: none
static bool by_hand;                 // and not with the datatype

static void await(_Atomic long* step, long number) {
  while (atomic_load(step) < number) sched_yield();
}

/// Ends the job, with a sentence.
static void refuse(const char* what) {
  fprintf(stderr, "bench: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

// ---- the datatype ----

static char* word; // the next one
static char* next_word(void) {
  char* this = word ? word : strtok(NULL, " ");
  word = NULL;
  if (!this) refuse("the datatype ends too early");
  return this;
}

static int next_number(void) { return (int)strtol(next_word(), NULL, 10); }
static int* next_numbers(int count) {
  int* numbers = allocate((size_t)count + 1, sizeof *numbers);
  for (int i = 0; i < count; ++i) numbers[i] = next_number();
  return numbers;
}

#define BASIC(name) {#name, name}
static MPI_Datatype basic_type(const char* name) {
  const struct {
    const char* name;
    MPI_Datatype type;
  } known[] = {
      BASIC(MPI_CHAR),     BASIC(MPI_SIGNED_CHAR),    BASIC(MPI_UNSIGNED_CHAR), BASIC(MPI_BYTE),
      BASIC(MPI_SHORT),    BASIC(MPI_UNSIGNED_SHORT), BASIC(MPI_INT),           BASIC(MPI_UNSIGNED),
      BASIC(MPI_LONG),     BASIC(MPI_UNSIGNED_LONG),  BASIC(MPI_LONG_LONG),     BASIC(MPI_UNSIGNED_LONG_LONG),
      BASIC(MPI_FLOAT),    BASIC(MPI_DOUBLE),         BASIC(MPI_LONG_DOUBLE),   BASIC(MPI_INT8_T),
      BASIC(MPI_INT16_T),  BASIC(MPI_INT32_T),        BASIC(MPI_INT64_T),       BASIC(MPI_UINT8_T),
      BASIC(MPI_UINT16_T), BASIC(MPI_UINT32_T),       BASIC(MPI_UINT64_T),
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp(known[i].name, name) == 0) return known[i].type;
  refuse("this program does not know one of the basic types");
  return MPI_DATATYPE_NULL;
}

static MPI_Datatype next_type(void) {
  const char* name = next_word();
  MPI_Datatype made, old;
  if (strcmp(name, "vector") == 0 || strcmp(name, "hvector") == 0) {
    int* given = next_numbers(3);
    old = next_type();
    if (name[0] == 'v')
      MPI_Type_vector(given[0], given[1], given[2], old, &made);
    else
      MPI_Type_create_hvector(given[0], given[1], given[2], old, &made);
  } else if (strcmp(name, "contiguous") == 0) {
    int count = next_number();
    MPI_Type_contiguous(count, next_type(), &made);
  } else if (strcmp(name, "indexed") == 0) {
    int count = next_number(), *lengths = next_numbers(count), *places = next_numbers(count);
    MPI_Type_indexed(count, lengths, places, next_type(), &made);
  } else if (strcmp(name, "indexed_block") == 0) {
    int count = next_number(), length = next_number(), *places = next_numbers(count);
    MPI_Type_create_indexed_block(count, length, places, next_type(), &made);
  } else if (strcmp(name, "subarray") == 0) {
    int count = next_number(), *sizes = next_numbers(count), *parts = next_numbers(count),
        *starts = next_numbers(count);
    MPI_Type_create_subarray(count, sizes, parts, starts, MPI_ORDER_C, next_type(), &made);
  } else if (strcmp(name, "resized") == 0) {
    int lower = next_number(), extent = next_number();
    MPI_Type_create_resized(next_type(), lower, extent, &made);
  } else {
    made = basic_type(name);
  }
  return made;
}

// ---- the loop by hand ----

#define EACH_LENGTH(packed, data)                                                                            \
  for (long i = 0; i < my->blocks; ++i)                                                                      \
    for (long j = 0; j < my->lengths[i]; ++j) packed = data[my->list[i] + j];
#define BACK_EACH_LENGTH(packed, data)                                                                       \
  for (long i = 0; i < my->blocks; ++i)                                                                      \
    for (long j = 0; j < my->lengths[i]; ++j) data[my->list[i] + j] = packed;

BY_HAND(double_lengths, double, EACH_LENGTH)
BY_HAND(float_lengths, float, EACH_LENGTH)
BY_HAND(char_blocks, char, EACH_BLOCK)
BY_HAND(char_lengths, char, EACH_LENGTH)

/// The place of each packed byte, from the first byte of the data. MPI_Pack tells it: of memory in which each byte holds a digit of
/// its own place, one digit after the other.
static int* places_of_bytes(void) {
  int* places = allocate(layout.bytes, sizeof *places);
  for (int digit = 0; digit < 4; ++digit) {
    int position = 0;
    for (size_t i = 0; i < layout.span; ++i) in[i] = (char)(i >> 8 * digit);
    MPI_Pack(in - lowest, 1, layout.type, packed_in, (int)layout.bytes, &position, MPI_COMM_WORLD);
    for (size_t i = 0; i < layout.bytes; ++i)
      places[i] |= (int)((unsigned)(unsigned char)packed_in[i] << 8 * digit);
  }
  return places;
}

/// Bytes that no two blocks may share, since the datatype is received too.
static void refuse_overlaps(const int* places) {
  memset(in, 0, layout.span);
  for (size_t i = 0; i < layout.bytes; ++i) {
    if (in[places[i]]) refuse("blocks of the datatype overlap, so it cannot be received");
    in[places[i]] = 1;
  }
}

/// Finds the blocks and the loop that a user would write for them.
static void find_loop(const int* places) {
  layout.list = allocate(layout.bytes + 1, sizeof *layout.list);
  layout.lengths = allocate(layout.bytes + 1, sizeof *layout.lengths);
  for (size_t i = 0; i < layout.bytes; ++i) {
    if (i == 0 || places[i] != places[i - 1] + 1) layout.list[layout.blocks++] = places[i];
    ++layout.lengths[layout.blocks - 1];
  }
  if (layout.blocks == 1) return; // no gaps: nothing to pack
  int unit = 8;
  long distance = layout.list[1] - layout.list[0];
  bool even = true;
  for (long i = 0; i < layout.blocks; ++i) {
    while ((layout.list[i] | layout.lengths[i]) % unit != 0) unit = unit == 8 ? 4 : 1;
    even &= layout.lengths[i] == layout.lengths[0] && layout.list[i] == i * distance;
  }
  for (long i = 0; i < layout.blocks; ++i) {
    layout.list[i] /= unit;
    layout.lengths[i] /= unit;
  }
  layout.block = layout.lengths[0];
  layout.stride = distance / unit;
  bool single = layout.block == 1;
  if (even && unit == 8) {
    layout.pack = single ? pack_doubles : pack_double_blocks;
    layout.unpack = single ? unpack_doubles : unpack_double_blocks;
  } else if (even && unit == 4) {
    layout.pack = single ? pack_floats : pack_float_blocks;
    layout.unpack = single ? unpack_floats : unpack_float_blocks;
  } else if (even) {
    layout.pack = pack_char_blocks;
    layout.unpack = unpack_char_blocks;
  } else {
    layout.pack = unit == 8 ? pack_double_lengths : unit == 4 ? pack_float_lengths : pack_char_lengths;
    layout.unpack = unit == 8   ? unpack_double_lengths
                    : unit == 4 ? unpack_float_lengths
                                : unpack_char_lengths;
  }
}

static void set_up(char* text) {
  MPI_Aint span;
  int bytes;
  word = strtok(text, " ");
  layout = (struct layout){.count = 1, .type = next_type()};
  MPI_Type_commit(&layout.type);
  MPI_Type_size(layout.type, &bytes);
  MPI_Type_get_true_extent(layout.type, &lowest, &span);
  if (bytes <= 0 || span > 1 << 30) refuse("the datatype must have between 1 byte and 1 GiB of data");
  layout.bytes = (size_t)bytes;
  layout.span = (size_t)span;
  out = (char*)new_buffer(layout.span);
  in = (char*)new_buffer(layout.span);
  packed_out = (char*)new_buffer(layout.bytes);
  packed_in = (char*)new_buffer(layout.bytes);
  int* places = places_of_bytes();
  refuse_overlaps(places);
  find_loop(places);
  free(places);
}

// ---- the calls ----

// Functions of their own, so that callgrind can tell that they are entered.
__attribute__((noinline)) void pack_by_hand(void);
__attribute__((noinline)) void unpack_by_hand(void);
void pack_by_hand(void) { layout.pack(&layout, out, packed_out); }
void unpack_by_hand(void) { layout.unpack(&layout, in, packed_in); }

static bool loops(void) { return by_hand && layout.pack != NULL; }

static void send(int peer) {
  if (loops()) {
    pack_by_hand();
    MPI_Send(packed_out, (int)layout.bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  } else if (by_hand) {
    MPI_Send(out, (int)layout.bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  } else {
    MPI_Send(out - lowest, 1, layout.type, peer, 0, MPI_COMM_WORLD);
  }
}

static void receive(int peer) {
  if (loops()) {
    MPI_Recv(packed_in, (int)layout.bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unpack_by_hand();
  } else if (by_hand) {
    MPI_Recv(in, (int)layout.bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in - lowest, 1, layout.type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void counted_call(void (*call)(int)) {
  if (counters) start_counters();
  call(1);
  if (counters) stop_counters();
}

static void send_0(long number) {
  await(&steps->partner, number);
  counted_call(send);
}
static void send_1(long number) {
  MPI_Request request;
  MPI_Irecv(in - lowest, 1, layout.type, 0, 0, MPI_COMM_WORLD, &request);
  atomic_store(&steps->partner, number);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void recv_0(long number) {
  await(&steps->partner, number);
  counted_call(receive);
  atomic_store(&steps->counted, number);
}
static void recv_1(long number) {
  MPI_Request request;
  await(&steps->counted, number - 1);
  MPI_Isend(out - lowest, 1, layout.type, 0, 0, MPI_COMM_WORLD, &request);
  atomic_store(&steps->partner, number);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// Prints by which path most of this process's messages went since `before`, in messages of each path.
static void print_path(const uint64_t* before) {
  int most = 0;
  uint64_t messages, most_messages = 0;
  for (int path = 0; path < near_traffic_paths() && path < most_paths; ++path) {
    near_traffic(path, &messages, NULL);
    if (messages - before[path] > most_messages) {
      most = path;
      most_messages = messages - before[path];
    }
  }
  printf("info path %s\n", near_traffic_name(most));
  fflush(stdout);
}

/// Whether what this rank has received is what the other one has sent; both have the same numbers in `out`.
static bool is_right(void) {
  int position = 0;
  MPI_Pack(out - lowest, 1, layout.type, packed_out, (int)layout.bytes, &position, MPI_COMM_WORLD);
  position = 0;
  MPI_Pack(in - lowest, 1, layout.type, packed_in, (int)layout.bytes, &position, MPI_COMM_WORLD);
  return memcmp(packed_in, packed_out, layout.bytes) == 0;
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  int file = open(argv[6], O_RDWR);
  steps = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (steps == MAP_FAILED) {
    perror(argv[6]);
    return 2;
  }
  struct world world = init_mpi(&argc, &argv);
  require_ranks(world, 2);
  print_library(world);
  const bool sends = strcmp(argv[1], "send") == 0;
  const long count = atol(argv[4]);
  by_hand = strcmp(argv[2], "by-hand") == 0;
  set_up(argv[5]);
  if (world.rank == 0 && strcmp(argv[3], "none") != 0) {
    counters = strcmp(argv[3], "hardware") == 0 ? hardware_counters : software_counters;
    open_counters(counters);
    prepare_counters(counters);
  }
  void (*const parts[2][2])(long) = {{recv_0, recv_1}, {send_0, send_1}};
  uint64_t before[most_paths] = {0};
  for (int path = 0; path < near_traffic_paths() && path < most_paths; ++path)
    near_traffic(path, &before[path], NULL);
  for (long number = 1; number <= count; ++number) parts[sends][world.rank](number);
  if (sends == (world.rank == 1))
    require_data(is_right(), argv[1], layout.bytes);
  else
    print_path(before);
  if (world.rank == 0) printf("info bytes %zu\n", layout.bytes);
  if (counters) print_counters(counters, argv[2], layout.bytes, count);
  MPI_Finalize();
  return 0;
}
