// What the machine allows in sweep.c between two bound processes, without MPI: the same buffers are written and read, and the
// barest program for each method moves the bytes. The root is process 0. No matching, no choice, no check.
//
//   sweep_limits SLOT REPETITIONS SIZES OPERATIONS     (as sweep.c)
//
// Values are those of sweep.c. Names are "operation:method", or only "method" for "latency". The methods:
//
// - ring: data goes through a ring for each direction, in chunks; "-2M" is its length, otherwise eight chunks. The receiver
//   works on one chunk while the sender fills the next
// - ring_stream: ... the sender with stores that bypass its cache (non-temporal)
// - swap: with each repetition the two processes swap the memory that they fill, so that each writes into the lines that it has
//   just read; only where data goes both ways
//
// Data of up to 56 bytes lies in the line of the flag that announces it. An allreduce is an exchange of the vectors, since any
// other way moves as many bytes of two processes.
#include "two_processes.h"

enum { max_slots = 1024, slot_head = cache_line, in_line = 56 };

/// One direction. The sender raises `filled`, the receiver `taken`.
struct channel {
  struct flag taken;
  unsigned char* slots; // each: the number of what it holds, in a line of its own, then the chunk
};

struct method {
  const char* name;
  size_t chunk;
  uint64_t slots; // of a ring; 0: as many as the data needs, and the directions swap
  void (*fill)(unsigned char*, const unsigned char*, size_t);
};

static const struct method methods[] = {
    {"ring/4K", 4 << 10, 8, copy},
    {"ring/16K", 16 << 10, 8, copy},
    {"ring/16K-1M", 16 << 10, 64, copy},
    {"ring/16K-2M", 16 << 10, 128, copy},
    {"ring_stream/16K", 16 << 10, 8, stream},
    {"swap/4K", 4 << 10, 0, copy},
    {"swap/16K", 16 << 10, 0, copy},
};

/// What moves in one direction in one repetition, as one of its two sides sees it.
struct flow {
  unsigned char* data; // from or to
  size_t bytes, at;
  const unsigned char* with; // the receiver combines what comes with this; null: it copies
  uint64_t chunks;           // in all repetitions so far
};

static struct {
  struct channel* channels;
  double* times; // seconds of a repetition, of both processes
  const struct method* method;
  struct flow sent, received;
  uint64_t emptied; // what the sender knows of `taken`
  uint64_t repetition;
  size_t bytes;
  unsigned char number;
  bool right;
} my;

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
static void
combine(unsigned char* to, const unsigned char* one, const unsigned char* other, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to[i] = one[i] | other[i];
}

static unsigned char* slot_of(int sender, const struct flow* flow, uint64_t chunk) {
  const struct method* method = my.method;
  const size_t distance = method->chunk + slot_head;
  if (method->slots != 0) return my.channels[sender].slots + chunk % method->slots * distance;
  const int side = (int)((my.repetition + (uint64_t)sender) % 2);
  return my.channels[side].slots + flow->at / method->chunk * distance;
}

static _Atomic uint64_t* number_of(unsigned char* slot) { return (_Atomic uint64_t*)slot; }
static unsigned char* data_of(unsigned char* slot, size_t bytes) {
  return slot + (bytes <= in_line ? sizeof(uint64_t) : slot_head);
}
static size_t next_part(const struct flow* flow) {
  const size_t left = flow->bytes - flow->at;
  return left < my.method->chunk ? left : my.method->chunk;
}
/// A number that no chunk of another direction has had.
static uint64_t number_for(int sender, uint64_t chunk) { return 2 * (chunk + 1) + (uint64_t)sender; }

static void send_some(void) {
  struct flow* flow = &my.sent;
  while (flow->at < flow->bytes) {
    if (my.method->slots != 0 && flow->chunks - my.emptied == my.method->slots) {
      my.emptied = seen(&my.channels[pair.self].taken);
      if (flow->chunks - my.emptied == my.method->slots) return;
    }
    const size_t part = next_part(flow);
    unsigned char* slot = slot_of(pair.self, flow, flow->chunks);
    (part <= in_line ? copy : my.method->fill)(data_of(slot, part), flow->data + flow->at, part);
    atomic_store_explicit(number_of(slot), number_for(pair.self, flow->chunks++), memory_order_release);
    flow->at += part;
  }
}

static void receive_some(void) {
  struct flow* flow = &my.received;
  while (flow->at < flow->bytes) {
    unsigned char* slot = slot_of(!pair.self, flow, flow->chunks);
    if (atomic_load_explicit(number_of(slot), memory_order_acquire) != number_for(!pair.self, flow->chunks))
      return;
    const size_t part = next_part(flow);
    if (flow->with != NULL)
      combine(flow->data + flow->at, flow->with + flow->at, data_of(slot, part), part);
    else
      copy(flow->data + flow->at, data_of(slot, part), part);
    ++flow->chunks;
    if (my.method->slots != 0) raise_to(&my.channels[!pair.self].taken, flow->chunks);
    flow->at += part;
  }
}

static void finish(void) {
  do {
    send_some();
    receive_some();
  } while (my.sent.at < my.sent.bytes || my.received.at < my.received.bytes);
}

static void send_data(unsigned char* from) {
  my.sent.data = from;
  my.sent.bytes = my.bytes;
  my.sent.at = 0;
}
static void receive_data(unsigned char* to, const unsigned char* with) {
  my.received.data = to;
  my.received.with = with;
  my.received.bytes = my.bytes;
  my.received.at = 0;
}

// ---- the operations, each as in operations.h: block 0 is process 0's ----

static unsigned char* block(unsigned char* buffer, int index) { return buffer + (size_t)index * my.bytes; }
static void write_block(int index) { rewrite_lines(block(pair.out, index), my.bytes, my.number); }
static void read_block(int index) { my.right &= read_lines(block(pair.in, index), my.bytes, my.number); }
static void keep_own(int from, int to) { copy(block(pair.in, to), block(pair.out, from), my.bytes); }

static void ping_pong(void) {
  for (int sender = 0; sender < 2; ++sender) {
    if (sender == pair.self) {
      write_block(0);
      send_data(pair.out);
      finish();
    } else {
      receive_data(pair.in, NULL);
      finish();
      read_block(0);
    }
  }
}

static void broadcast(void) {
  if (pair.self == 0) {
    write_block(0);
    send_data(pair.out);
    finish();
  } else {
    receive_data(pair.in, NULL);
    finish();
    read_block(0);
  }
}

static void reduce(void) {
  write_block(0);
  if (pair.self == 0)
    receive_data(pair.in, pair.out);
  else
    send_data(pair.out);
  finish();
  if (pair.self == 0) read_block(0);
}

static void allreduce(void) {
  write_block(0);
  send_data(pair.out);
  receive_data(pair.in, pair.out);
  finish();
  read_block(0);
}

/// Each process sends one of its blocks to the other, and keeps one.
static void exchange(int sent, int kept) {
  send_data(block(pair.out, sent));
  receive_data(block(pair.in, !pair.self), NULL);
  finish();
  keep_own(kept, pair.self);
  read_block(0);
  read_block(1);
}

static void allgather(void) {
  write_block(0);
  exchange(0, 0);
}

static void alltoall(void) {
  write_block(0);
  write_block(1);
  exchange(!pair.self, pair.self);
}

static void gather(void) {
  write_block(0);
  if (pair.self == 1) {
    send_data(pair.out);
    finish();
    return;
  }
  receive_data(block(pair.in, 1), NULL);
  finish();
  keep_own(0, 0);
  read_block(0);
  read_block(1);
}

static void scatter(void) {
  if (pair.self == 0) {
    write_block(0);
    write_block(1);
    send_data(block(pair.out, 1));
    finish();
    keep_own(0, 0);
  } else {
    receive_data(pair.in, NULL);
    finish();
  }
  read_block(0);
}

static const struct {
  const char* name;
  void (*execute)(void);
  bool both_ways;
} operations[] = {
    {"latency", ping_pong, true},   {"broadcast", broadcast, false}, {"reduce", reduce, false},
    {"allreduce", allreduce, true}, {"allgather", allgather, true},  {"alltoall", alltoall, true},
    {"gather", gather, false},      {"scatter", scatter, false},
};

static void measure(size_t operation, const char* repetitions) {
  const long count = atol(repetitions);
  meet();
  raise_to(&my.channels[pair.self].taken, 0);
  for (uint64_t i = 0; i < max_slots; ++i)
    *number_of(my.channels[pair.self].slots + i * (my.method->chunk + slot_head)) = 0;
  my.sent = my.received = (struct flow){0};
  my.emptied = my.repetition = 0;
  my.right = true;
  meet();
  const double start = now();
  for (long i = 0; i < count; ++i) {
    ++my.number;
    operations[operation].execute();
    ++my.repetition;
  }
  const double each = (now() - start) / (double)count;
  char name[64];
  const bool is_latency = operation == 0;
  snprintf(name, sizeof name, "%s%s%s", is_latency ? "" : operations[operation].name, is_latency ? "" : ":",
           my.method->name);
  require_data(my.right, name, my.bytes);
  my.times[pair.self] = each;
  meet();
  if (pair.self == 0)
    print_value(name, repetitions, my.bytes, (my.times[0] + my.times[1]) / (is_latency ? 4 : 2) * 1e6);
}

int main(int argc, char** argv) {
  struct arguments arguments = read_arguments(argc, argv);
  struct arguments which = {.variants = argc > 4 ? argv[4] : "latency"};
  const size_t largest = largest_size(&arguments);
  my.channels = new_shared(2 * sizeof *my.channels);
  my.times = new_shared(2 * sizeof *my.times);
  for (int i = 0; i < 2; ++i) my.channels[i].slots = new_shared((size_t)max_slots * ((16 << 10) + slot_head));
  start_pair(2 * largest);
  char list[64];
  snprintf(list, sizeof list, "%s", arguments.variants);
  for (char* repetitions = strtok(list, ","); repetitions; repetitions = strtok(NULL, ","))
    for (size_t operation = 0; operation < sizeof operations / sizeof operations[0]; ++operation) {
      if (!wants(&which, operations[operation].name)) continue;
      for (size_t method = 0; method < sizeof methods / sizeof methods[0]; ++method) {
        my.method = &methods[method];
        if (my.method->slots == 0 && !operations[operation].both_ways) continue;
        for (int at = 0; at < arguments.count; ++at) {
          my.bytes = arguments.sizes[at];
          if (my.bytes < 4 || (my.method->slots == 0 && my.bytes > max_slots * my.method->chunk)) continue;
          measure(operation, repetitions);
        }
      }
    }
  return end_pair();
}
