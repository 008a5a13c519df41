// Derived datatypes beside packing by hand, for the layouts of layouts.h. All ways of a layout are measured in fine alternation.
//
//   datatypes SLOT WAYS SIZES LAYOUTS   WAYS: those that are printed, of
//
//     hand         the loop by hand that packs, in microseconds     pack       MPI_Pack
//     hand-unpack  the loop by hand that unpacks                    unpack     MPI_Unpack
//     pack-bytes   MPI_Pack of as many consecutive bytes; of few, this is what the call takes
//     typed        half a round trip with the datatype              isend      the same with MPI_Isend and MPI_Irecv
//     alloc        half a round trip with the datatype in memory of MPI_Alloc_mem
//     by-hand      half a round trip: packed by hand, a contiguous message, unpacked by hand
//     packed       the same with MPI_Pack and MPI_Unpack
//     contiguous   half a round trip of as many consecutive bytes
//     alltoallw    the datatype from each rank to each
//     put          the datatype from each rank into the window of the other, MPI_Put between two fences
//
// SIZES: bytes of data, about; layouts that have no such size, or hardly a gap in so little data, are left out. The value of each
// way has the layout as its name. Every way is checked once, with what is beside the data.
#include "alternation.h"
#include "layouts.h"

enum { most_span = 256 << 20 }; // layouts that need more memory are left out

static struct layout layout;
static char *out, *in;               // strided, one part for each rank
static char *packed_out, *packed_in; // packed
static size_t distance;              // from one rank's part of `out` and `in` to the next one's
static MPI_Win window;
static char* exposed;              // the window's memory
static char *alloc_out, *alloc_in; // as `out` and `in`, one part each, of MPI_Alloc_mem

static void no_way(struct operands* my) { (void)my; }

static void pack_by_hand(struct operands* my) {
  (void)my;
  layout.pack(&layout, out, packed_out);
}
static void unpack_by_hand(struct operands* my) {
  (void)my;
  layout.unpack(&layout, in, packed_out);
}
static void pack_by_mpi(struct operands* my) {
  (void)my;
  int position = 0;
  MPI_Pack(out, layout.count, layout.type, packed_out, (int)layout.bytes, &position, MPI_COMM_WORLD);
}
static void unpack_by_mpi(struct operands* my) {
  (void)my;
  int position = 0;
  MPI_Unpack(packed_out, (int)layout.bytes, &position, in, layout.count, layout.type, MPI_COMM_WORLD);
}

static void pack_bytes(struct operands* my) {
  (void)my;
  int position = 0;
  MPI_Pack(packed_out, (int)layout.bytes, MPI_BYTE, packed_in, (int)layout.bytes, &position, MPI_COMM_WORLD);
}

/// A round trip of what `send` sends and `receive` receives.
static void go_there_and_back(struct operands* my, void (*send)(int), void (*receive)(int)) {
  if (my->world.rank == 0) {
    send(1);
    receive(1);
  } else if (my->world.rank == 1) {
    receive(0);
    send(0);
  }
}

static void send_typed(int peer) { MPI_Send(out, layout.count, layout.type, peer, 0, MPI_COMM_WORLD); }
static void receive_typed(int peer) {
  MPI_Recv(in, layout.count, layout.type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void typed(struct operands* my) { go_there_and_back(my, send_typed, receive_typed); }

static void send_alloc(int peer) { MPI_Send(alloc_out, layout.count, layout.type, peer, 0, MPI_COMM_WORLD); }
static void receive_alloc(int peer) {
  MPI_Recv(alloc_in, layout.count, layout.type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void in_alloc(struct operands* my) { go_there_and_back(my, send_alloc, receive_alloc); }

static void isend_typed(int peer) {
  MPI_Request request;
  MPI_Isend(out, layout.count, layout.type, peer, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void irecv_typed(int peer) {
  MPI_Request request;
  MPI_Irecv(in, layout.count, layout.type, peer, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void nonblocking(struct operands* my) { go_there_and_back(my, isend_typed, irecv_typed); }

static void send_bytes(int peer) {
  MPI_Send(packed_out, (int)layout.bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
}
static void receive_bytes(int peer) {
  MPI_Recv(packed_in, (int)layout.bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void contiguous(struct operands* my) { go_there_and_back(my, send_bytes, receive_bytes); }

static void send_by_hand(int peer) {
  layout.pack(&layout, out, packed_out);
  send_bytes(peer);
}
static void receive_by_hand(int peer) {
  receive_bytes(peer);
  layout.unpack(&layout, in, packed_in);
}
static void by_hand(struct operands* my) { go_there_and_back(my, send_by_hand, receive_by_hand); }

static void send_packed(int peer) {
  int position = 0;
  MPI_Pack(out, layout.count, layout.type, packed_out, (int)layout.bytes, &position, MPI_COMM_WORLD);
  MPI_Send(packed_out, position, MPI_PACKED, peer, 0, MPI_COMM_WORLD);
}
static void receive_packed(int peer) {
  int position = 0;
  MPI_Recv(packed_in, (int)layout.bytes, MPI_PACKED, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Unpack(packed_in, (int)layout.bytes, &position, in, layout.count, layout.type, MPI_COMM_WORLD);
}
static void packed(struct operands* my) { go_there_and_back(my, send_packed, receive_packed); }

static void alltoallw(struct operands* my) {
  (void)my;
  int counts[2] = {layout.count, layout.count}, places[2] = {0, (int)distance};
  MPI_Datatype types[2] = {layout.type, layout.type};
  MPI_Alltoallw(out, counts, places, types, in, counts, places, types, MPI_COMM_WORLD);
}
static void put(struct operands* my) {
  MPI_Win_fence(0, window);
  MPI_Put(out, layout.count, layout.type, 1 - my->world.rank, 0, layout.count, layout.type, window);
  MPI_Win_fence(0, window);
}

/// What a way leaves behind, and where.
enum result { packed_bytes, strided_bytes, from_each_rank, in_the_window, in_alloc_mem, same_bytes };

static const struct {
  const char* name;
  operation* call;
  bool round_trip;
  enum result result;
} all_ways[] = {
    {"hand", pack_by_hand, false, packed_bytes},
    {"pack", pack_by_mpi, false, packed_bytes},
    {"hand-unpack", unpack_by_hand, false, strided_bytes},
    {"unpack", unpack_by_mpi, false, strided_bytes},
    {"pack-bytes", pack_bytes, false, same_bytes},
    {"typed", typed, true, strided_bytes},
    {"isend", nonblocking, true, strided_bytes},
    {"alloc", in_alloc, true, in_alloc_mem},
    {"by-hand", by_hand, true, strided_bytes},
    {"packed", packed, true, strided_bytes},
    {"contiguous", contiguous, true, same_bytes},
    {"alltoallw", alltoallw, false, from_each_rank},
    {"put", put, false, in_the_window},
};
enum { count_ways = sizeof all_ways / sizeof *all_ways, untouched = 0x5a };

/// Whether `strided` has the data of `from` where the layout has it, and was not written anywhere else.
static bool has_data_of(const char* strided, char* from) {
  char *expected = allocate(layout.span, 1), *data = allocate(layout.bytes, 1);
  memset(expected, untouched, layout.span);
  layout.pack(&layout, from, data);
  layout.unpack(&layout, expected, data);
  bool same = memcmp(strided, expected, layout.span) == 0;
  free(expected);
  free(data);
  return same;
}

/// Whether the way moves what the loops by hand do. `out` is the same at both ranks.
static bool is_right(struct operands* my, int way) {
  enum result result = all_ways[way].result;
  char* data = allocate(layout.bytes, 1);
  layout.pack(&layout, out, data);
  // Those that unpack, or send packed bytes, begin with the right ones; those that pack begin with none.
  if (result == packed_bytes)
    memset(packed_out, untouched, layout.bytes);
  else
    memcpy(packed_out, data, layout.bytes);
  memset(packed_in, untouched, layout.bytes);
  memset(in, untouched, 2 * distance);
  memset(exposed, untouched, distance);
  memset(alloc_in, untouched, distance);
  MPI_Barrier(MPI_COMM_WORLD);
  all_ways[way].call(my);
  bool right = true;
  if (result == packed_bytes) right = memcmp(packed_out, data, layout.bytes) == 0;
  if (result == same_bytes) right = memcmp(packed_in, data, layout.bytes) == 0;
  if (result == strided_bytes) right = has_data_of(in, out);
  if (result == in_the_window) right = has_data_of(exposed, out);
  if (result == in_alloc_mem) right = has_data_of(alloc_in, alloc_out);
  for (int rank = 0; result == from_each_rank && rank < 2; ++rank)
    right &= has_data_of(in + (size_t)rank * distance, out + (size_t)my->world.rank * distance);
  free(data);
  return right;
}

static void measure_ways(struct operands* my, const char* name, size_t bytes,
                         const struct arguments* arguments) {
  struct way ways[count_ways];
  int count = 0, which[count_ways];
  for (int i = 0; i < count_ways; ++i) {
    if (!wants(arguments, all_ways[i].name)) continue;
    require_data(is_right(my, i), all_ways[i].name, bytes);
    which[count] = i;
    ways[count++] = (struct way){.write = no_way, .call = all_ways[i].call, .read = no_way, .bytes = bytes};
  }
  measure_in_alternation(my, ways, count, arguments->budget);
  for (int i = 0; i < count && my->world.rank == 0; ++i)
    print_value(name, all_ways[which[i]].name, bytes,
                ways[i].seconds * 1e6 / (all_ways[which[i]].round_trip ? 2 : 1));
}

static void measure(struct operands* my, const char* name, size_t bytes, const struct arguments* arguments) {
  layout = layout_of(name, bytes);
  if (!layout.pack) {
    fprintf(stderr, "bench: there is no layout \"%s\"\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (has_gaps_and_size(&layout, bytes) && layout.span <= most_span) {
    MPI_Type_commit(&layout.type);
    distance = (layout.span + 4095) / 4096 * 4096;
    out = (char*)new_buffer(2 * distance);
    in = (char*)new_buffer(2 * distance);
    packed_out = (char*)new_buffer(layout.bytes);
    packed_in = (char*)new_buffer(layout.bytes);
    MPI_Win_allocate((MPI_Aint)distance, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &exposed, &window);
    MPI_Alloc_mem((MPI_Aint)distance, MPI_INFO_NULL, &alloc_out);
    MPI_Alloc_mem((MPI_Aint)distance, MPI_INFO_NULL, &alloc_in);
    for (size_t i = 0; i < 2 * distance; ++i) out[i] = (char)random_number(i); // the same at both ranks
    memcpy(alloc_out, out, distance);
    measure_ways(my, name, bytes, arguments);
    MPI_Win_free(&window);
    MPI_Free_mem(alloc_out);
    MPI_Free_mem(alloc_in);
    free_buffer(out, 2 * distance);
    free_buffer(in, 2 * distance);
    free_buffer(packed_out, layout.bytes);
    free_buffer(packed_in, layout.bytes);
  }
  free_layout(&layout);
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  require_ranks(world, 2);
  struct arguments arguments = read_arguments(argc, argv);
  struct operands my = new_operands(world, 0);
  char names[4096];
  snprintf(names, sizeof names, "%s", argc > 4 ? argv[4] : "d1s2");
  for (char* name = strtok(names, ","); name; name = strtok(NULL, ","))
    for (int i = 0; i < arguments.count; ++i) measure(&my, name, arguments.sizes[i], &arguments);
  MPI_Finalize();
  return 0;
}
