// What the machine allows between two bound processes, without MPI: the same ping-pong as latency.c, with the
// barest program for each way to move the bytes. No matching, no envelope, no choice: an MPI library cannot
// be much faster than the best of these, and how near it comes is the figure to look at.
//
//   limits SLOT_MS VARIANTS SIZES        (as latency.c)
//
// A line's value is microseconds of half a round trip. Names are "way" or "way/parameter"; the parameter that
// is best counts. The ways:
//
//   line         one cache line there and back; /1: both write the same line, /2: each has its own
//   touch        no transfer: the rewriting and reading that "rewritten" has in its time, by one process in
//   its cache cma_pull     the receiver copies with process_vm_readv cma_halves   ... the first half, while
//   the sender copies the second one with process_vm_writev ring         the sender copies chunks into a
//   shared ring, the receiver copies them out, both at the same time ring_stream  ... the sender with stores
//   that bypass its cache (non-temporal) pull         the sender's buffer is shared memory: the receiver
//   copies from it halves       both buffers are shared: sender and receiver copy half each push_stream  the
//   receiver's buffer is shared: the sender stores into it, bypassing its cache
//
// A ping-pong needs no word that the sender's buffer is free again: the answer says it.
#include "measure.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// ---- stores that bypass the cache ----

typedef void store_lines(unsigned char* to, const unsigned char* from, size_t lines);

static void store_plain(unsigned char* to, const unsigned char* from, size_t lines) {
  memcpy(to, from, lines * cache_line);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void stream_avx512(unsigned char* to, const unsigned char* from,
                                                             size_t lines) {
  for (size_t at = 0; at < lines * cache_line; at += 64)
    _mm512_stream_si512((void*)(to + at), _mm512_loadu_si512(from + at));
  _mm_sfence();
}

__attribute__((target("avx2"))) static void stream_avx2(unsigned char* to, const unsigned char* from,
                                                        size_t lines) {
  for (size_t at = 0; at < lines * cache_line; at += 64) {
    __m256i low = _mm256_loadu_si256((const void*)(from + at));
    __m256i high = _mm256_loadu_si256((const void*)(from + at + 32));
    _mm256_stream_si256((void*)(to + at), low);
    _mm256_stream_si256((void*)(to + at + 32), high);
  }
  _mm_sfence();
}

static void stream_sse2(unsigned char* to, const unsigned char* from, size_t lines) {
  for (size_t at = 0; at < lines * cache_line; at += 16)
    _mm_stream_si128((void*)(to + at), _mm_loadu_si128((const void*)(from + at)));
  _mm_sfence();
}
#endif

static store_lines* stream_lines = store_plain;

/// Chooses the widest stores of this processor and names them.
static const char* choose_stores(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return stream_lines = stream_avx512, "avx512";
  if (__builtin_cpu_supports("avx2")) return stream_lines = stream_avx2, "avx2";
  return stream_lines = stream_sse2, "sse2";
#else
  return "ordinary";
#endif
}

/// `to` at a line's beginning; what is left after whole lines is stored as usual.
static void stream(unsigned char* to, const unsigned char* from, size_t bytes) {
  size_t whole = bytes / cache_line;
  stream_lines(to, from, whole);
  memcpy(to + whole * cache_line, from + whole * cache_line, bytes % cache_line);
}

static void copy(unsigned char* to, const unsigned char* from, size_t bytes) { memcpy(to, from, bytes); }

// ---- what both processes see ----

enum { ring_bytes = 1 << 20, most_slots = 8 };

/// A number that one process raises and the other one waits for; nothing else is in its line.
struct flag {
  _Alignas(cache_line) _Atomic uint64_t number;
};

static void raise_to(struct flag* flag, uint64_t number) {
  atomic_store_explicit(&flag->number, number, memory_order_release);
}

static void wait_for(struct flag* flag, uint64_t number) {
  while (atomic_load_explicit(&flag->number, memory_order_acquire) < number) {}
}

/// One direction. Only the sender raises `offered`, `pushed` and `filled`, only the receiver `taken`.
struct channel {
  struct flag offered;            // messages that may be fetched
  struct flag pushed;             // messages whose half the sender has copied
  struct flag taken;              // chunks that the receiver has copied out
  struct flag filled[most_slots]; // per slot: the number of its newest chunk
  _Alignas(4096) unsigned char ring[ring_bytes];
};

struct shared {
  struct channel from[2]; // the direction in which process i sends
  struct flag common_line, own_line[2];
  struct flag told, heard; // agree_by_memory
  long numbers[8];
  long facts[2][2];              // of each process: its core, whether it may copy
  unsigned char* private_out[2]; // addresses in the owner
  unsigned char* private_in[2];
  pid_t process[2];
};

/// One process' view of a ping-pong.
struct side {
  struct shared* shared;
  unsigned char* shared_out[2]; // buffers in shared memory, of both processes
  unsigned char* shared_in[2];
  unsigned char *out, *in;        // what this way sends from and receives into
  uint64_t sent, received;        // messages so far
  uint64_t chunks_out, chunks_in; // through the rings so far
  size_t bytes;
  int self;
  bool touch, right;
  bool cma; // may each process copy from the other?
  unsigned char number;
  const struct way* way;
};

static struct side me;

static struct channel* outgoing(struct side* side) { return &side->shared->from[side->self]; }
static struct channel* incoming(struct side* side) { return &side->shared->from[!side->self]; }

static void agree_by_memory(long* numbers, int count) {
  static uint64_t round;
  struct shared* shared = me.shared;
  size_t bytes = (size_t)count * sizeof numbers[0];
  ++round;
  if (me.self == 0) {
    memcpy(shared->numbers, numbers, bytes);
    raise_to(&shared->told, round);
    wait_for(&shared->heard, round);
  } else {
    wait_for(&shared->told, round);
    memcpy(numbers, shared->numbers, bytes);
    raise_to(&shared->heard, round);
  }
}

// ---- the ways ----

struct way {
  const char* name;
  void (*send)(struct side*);
  void (*receive)(struct side*);
  bool shared_out, shared_in; // which buffers are in shared memory
  size_t chunk;               // of rings
  int slots;
  void (*fill)(unsigned char*, const unsigned char*, size_t);
};

/// Whether this process may copy from the other one: a sandbox may forbid it.
static bool may_copy(const struct side* side) {
  char byte;
  struct iovec here = {&byte, 1}, there = {side->shared->private_out[!side->self], 1};
  return process_vm_readv(side->shared->process[!side->self], &here, 1, &there, 1, 0) == 1;
}

static void fetch(struct side* side, size_t from, size_t bytes) {
  struct iovec here = {side->in + from, bytes};
  struct iovec there = {side->shared->private_out[!side->self] + from, bytes};
  ssize_t got = process_vm_readv(side->shared->process[!side->self], &here, 1, &there, 1, 0);
  if (got != (ssize_t)bytes) {
    perror("bench: process_vm_readv");
    exit(5);
  }
}

static void bring(struct side* side, size_t from, size_t bytes) {
  struct iovec here = {side->out + from, bytes};
  struct iovec there = {side->shared->private_in[!side->self] + from, bytes};
  ssize_t got = process_vm_writev(side->shared->process[!side->self], &here, 1, &there, 1, 0);
  if (got != (ssize_t)bytes) {
    perror("bench: process_vm_writev");
    exit(5);
  }
}

/// Where the sender's half begins: at a page or, in small messages, at a line.
static size_t half_of(size_t bytes) {
  size_t unit = bytes >= 16384 ? 4096 : cache_line;
  return (bytes / 2 + unit - 1) / unit * unit;
}

static void offer(struct side* side) { raise_to(&outgoing(side)->offered, side->sent); }
static void await_offer(struct side* side) { wait_for(&incoming(side)->offered, side->received); }

static void receive_cma(struct side* side) {
  await_offer(side);
  fetch(side, 0, side->bytes);
}

static void send_cma_half(struct side* side) {
  size_t half = half_of(side->bytes);
  offer(side);
  bring(side, half, side->bytes - half);
  raise_to(&outgoing(side)->pushed, side->sent);
}

static void receive_cma_half(struct side* side) {
  await_offer(side);
  fetch(side, 0, half_of(side->bytes));
  wait_for(&incoming(side)->pushed, side->received);
}

static void receive_pull(struct side* side) {
  await_offer(side);
  copy(side->in, side->shared_out[!side->self], side->bytes);
}

static void send_half(struct side* side) {
  size_t half = half_of(side->bytes);
  offer(side);
  copy(side->shared_in[!side->self] + half, side->out + half, side->bytes - half);
  raise_to(&outgoing(side)->pushed, side->sent);
}

static void receive_half(struct side* side) {
  await_offer(side);
  copy(side->in, side->shared_out[!side->self], half_of(side->bytes));
  wait_for(&incoming(side)->pushed, side->received);
}

static void send_push(struct side* side) {
  stream(side->shared_in[!side->self], side->out, side->bytes);
  offer(side);
}

static void send_ring(struct side* side) {
  const struct way* way = side->way;
  struct channel* channel = outgoing(side);
  for (size_t at = 0; at < side->bytes; at += way->chunk) {
    uint64_t chunk = ++side->chunks_out;
    size_t slot = chunk % (uint64_t)way->slots, left = side->bytes - at;
    if (chunk > (uint64_t)way->slots) wait_for(&channel->taken, chunk - (uint64_t)way->slots);
    way->fill(channel->ring + slot * way->chunk, side->out + at, left < way->chunk ? left : way->chunk);
    raise_to(&channel->filled[slot], chunk);
  }
}

static void receive_ring(struct side* side) {
  const struct way* way = side->way;
  struct channel* channel = incoming(side);
  for (size_t at = 0; at < side->bytes; at += way->chunk) {
    uint64_t chunk = ++side->chunks_in;
    size_t slot = chunk % (uint64_t)way->slots, left = side->bytes - at;
    wait_for(&channel->filled[slot], chunk);
    copy(side->in + at, channel->ring + slot * way->chunk, left < way->chunk ? left : way->chunk);
    raise_to(&channel->taken, chunk);
  }
}

// Chunks from what fits in the first-level cache to what leaves the second-level one; rings are as short as
// pipelining allows, since every slot more is cache less.
static const struct way ways[] = {
    {.name = "cma_pull", .send = offer, .receive = receive_cma},
    {.name = "cma_halves", .send = send_cma_half, .receive = receive_cma_half},
    {.name = "ring/4K", .send = send_ring, .receive = receive_ring, .chunk = 4096, .slots = 8, .fill = copy},
    {.name = "ring/16K",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 16384,
     .slots = 4,
     .fill = copy},
    {.name = "ring/64K",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 65536,
     .slots = 4,
     .fill = copy},
    {.name = "ring_stream/4K",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 4096,
     .slots = 8,
     .fill = stream},
    {.name = "ring_stream/16K",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 16384,
     .slots = 8,
     .fill = stream},
    {.name = "ring_stream/64K",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 65536,
     .slots = 8,
     .fill = stream},
    {.name = "pull", .send = offer, .receive = receive_pull, .shared_out = true},
    {.name = "halves", .send = send_half, .receive = receive_half, .shared_out = true, .shared_in = true},
    {.name = "push_stream", .send = send_push, .receive = await_offer, .shared_in = true},
};

// ---- measuring ----

static void send(struct side* side) {
  if (side->touch) rewrite_lines(side->out, side->bytes, side->number);
  ++side->sent;
  side->way->send(side);
}

static void receive(struct side* side) {
  ++side->received;
  side->way->receive(side);
  if (side->touch) side->right &= read_lines(side->in, side->bytes, side->number);
}

static void round_trips(void* context, long count) {
  struct side* side = context;
  for (long i = 0; i < count; ++i) {
    if (side->touch) ++side->number;
    if (side->self == 0) {
      send(side);
      receive(side);
    } else {
      receive(side);
      send(side);
    }
  }
}

static void measure_way(struct side* side, const struct way* way, const struct driver* driver) {
  const char* variant = side->touch ? "rewritten" : "reused";
  struct shared* shared = side->shared;
  side->way = way;
  side->out = way->shared_out ? side->shared_out[side->self] : shared->private_out[side->self];
  side->in = way->shared_in ? side->shared_in[side->self] : shared->private_in[side->self];
  side->number = 0;
  side->right = true;
  rewrite_lines(side->out, side->bytes, 0);
  rewrite_lines(side->in, side->bytes, 0xff);
  agree_by_memory((long[1]){0}, 1); // nobody sends before both have prepared their buffers
  double each = seconds_each(round_trips, side, driver);
  agree_by_memory((long[1]){0}, 1); // the last message has been fetched; buffers may change
  require_data(side->right && read_lines(side->in, side->bytes, side->number), way->name, side->bytes);
  if (side->self == 0) print_value(way->name, variant, side->bytes, each / 2 * 1e6);
}

static void common_line_there_and_back(void* context, long count) {
  static uint64_t number;
  struct side* side = context;
  struct flag* line = &side->shared->common_line;
  for (long i = 0; i < count; ++i, number += 2) {
    if (side->self == 0) {
      raise_to(line, number + 1);
      wait_for(line, number + 2);
    } else {
      wait_for(line, number + 1);
      raise_to(line, number + 2);
    }
  }
}

static void own_lines_there_and_back(void* context, long count) {
  static uint64_t number;
  struct side* side = context;
  struct flag* line = side->shared->own_line;
  for (long i = 0; i < count; ++i) {
    ++number;
    if (side->self == 0) {
      raise_to(&line[0], number);
      wait_for(&line[1], number);
    } else {
      wait_for(&line[0], number);
      raise_to(&line[1], number);
    }
  }
}

static void touch_alone(void* context, long count) {
  struct side* side = context;
  for (long i = 0; i < count; ++i) {
    rewrite_lines(side->out, side->bytes, 1);
    side->right |= read_lines(side->in, side->bytes, 1);
  }
}

static void nobody_else(long* numbers, int count) { (void)numbers, (void)count; }

static void measure_all(struct side* side, const struct arguments* arguments) {
  struct driver driver = {arguments->slot, agree_by_memory, side->self == 0, false};
  struct driver alone = {arguments->slot / 4, nobody_else, true, false};
  double one = seconds_each(common_line_there_and_back, side, &driver);
  double two = seconds_each(own_lines_there_and_back, side, &driver);
  if (side->self == 0) {
    print_value("line/1", "reused", 0, one / 2 * 1e6);
    print_value("line/2", "reused", 0, two / 2 * 1e6);
  }
  for (int i = 0; i < arguments->count; ++i) {
    side->bytes = arguments->sizes[i];
    if (side->bytes < cache_line) continue; // what fits in a line has the line as its limit
    side->out = side->shared->private_out[side->self];
    side->in = side->shared->private_in[side->self];
    if (side->self == 0 && wants(arguments, "rewritten")) {
      double each = seconds_each(touch_alone, side, &alone);
      print_value("touch", "rewritten", side->bytes, each * 1e6);
    }
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; ++way) {
      // A smaller chunk has the message in one piece already.
      if (way > 0 && ways[way].fill && ways[way - 1].fill == ways[way].fill &&
          ways[way - 1].chunk >= side->bytes)
        continue;
      if (!side->cma && strncmp(ways[way].name, "cma", 3) == 0) continue;
      side->touch = false;
      if (wants(arguments, "reused")) measure_way(side, &ways[way], &driver);
      side->touch = true;
      if (wants(arguments, "rewritten")) measure_way(side, &ways[way], &driver);
    }
  }
}

static void* new_shared(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    perror("bench: mmap");
    exit(3);
  }
  return memory;
}

static void other_is_gone(int number) {
  (void)number;
  _exit(5); // it has said why
}

int main(int argc, char** argv) {
  struct arguments arguments = read_arguments(argc, argv);
  size_t largest = largest_size(&arguments) + 4096;
  me.shared = new_shared(sizeof *me.shared);
  for (int i = 0; i < 2; ++i) {
    me.shared_out[i] = new_shared(largest);
    me.shared_in[i] = new_shared(largest);
  }
  signal(SIGCHLD, other_is_gone);
  pid_t child = fork();
  if (child < 0) {
    perror("bench: fork");
    return 3;
  }
  me.self = child == 0;
  if (me.self == 1) prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); // Yama: each may copy from the other
  pin_to(core_of(me.self));
  me.shared->process[me.self] = getpid();
  me.shared->private_out[me.self] = new_buffer(largest);
  me.shared->private_in[me.self] = new_buffer(largest);
  const char* stores = choose_stores();
  agree_by_memory((long[1]){0}, 1); // addresses and ids are there
  me.shared->facts[me.self][0] = bound_core();
  me.shared->facts[me.self][1] = may_copy(&me);
  agree_by_memory((long[1]){0}, 1);
  me.cma = me.shared->facts[0][1] && me.shared->facts[1][1];
  if (me.self == 0) {
    printf("info stores %s\ninfo cores %ld %ld\n", stores, me.shared->facts[0][0], me.shared->facts[1][0]);
    if (!me.cma) printf("info cma refused: its ways are left out\n");
  }
  measure_all(&me, &arguments);
  if (me.self == 0) signal(SIGCHLD, SIG_DFL); // from here on its end is no failure
  agree_by_memory((long[1]){0}, 1);
  if (me.self == 1) return 0;
  int status;
  waitpid(child, &status, 0);
  return status ? 5 : 0;
}
