// What the machine allows between two bound processes, without MPI: the same ping-pong as latency.c, with the
// barest program for each method to move the bytes. No matching, no envelope, no choice: an MPI library cannot
// be much faster than the best of these, and how near it comes is the figure to look at.
//
//   limits BUDGET_MS VARIANTS SIZES        (as latency.c)
//
// A line's value is microseconds of half a round trip. Names are "method" or "method/parameter"; the parameter that
// is best counts. The methods:
//
// - line: one cache line there and back; /1: both write the same line, /2: each has its own
// - touch: no transfer; what "rewritten" rewrites and reads, by one process in its own cache
// - cma_pull: the receiver copies with process_vm_readv
// - cma_halves: ... the first half, while the sender copies the second one with process_vm_writev
// - ring: the sender copies chunks into a shared ring, the receiver copies them out, both at the same time; "-2M" is the
//   length of the ring, otherwise four or eight chunks
// - ring_past: ... the receiver with stores that bypass its cache
// - ring_stream: ... the sender with stores that bypass its cache (non-temporal)
// - turns: ... the chunks of both directions are the same, so each process writes those that it has just read
// - pull: the sender's buffer is shared memory; the receiver copies from it
// - halves: both buffers are shared; sender and receiver copy half each
// - push_stream: the receiver's buffer is shared; the sender stores into it, bypassing its cache
//
// A ping-pong needs no word that the sender's buffer is free again: the answer says it.
#include "two_processes.h"

// ---- shared by both processes ----

enum { ring_bytes = 4 << 20, max_slots = 256 };

/// One direction. Only the sender raises `announced`, `pushed` and `filled`, only the receiver `taken`.
struct channel {
  struct flag announced;         // messages that may be fetched
  struct flag pushed;            // messages whose half the sender has copied
  struct flag taken;             // chunks that the receiver has copied out
  struct flag filled[max_slots]; // per slot: the number of its newest chunk
  _Alignas(4096) unsigned char ring[ring_bytes];
};

struct shared {
  struct channel from[2];           // the direction in which process i sends
  struct flag turned[2][max_slots]; // by sender and chunk: the newest message
  _Alignas(4096) unsigned char turns[ring_bytes];
  struct flag common_line, own_line[2];
};

/// One process' view of a ping-pong.
struct side {
  struct shared* shared;
  unsigned char* shared_out[2]; // buffers in shared memory, of both processes
  unsigned char* shared_in[2];
  unsigned char *out, *in;        // what this method sends from and receives into
  uint64_t sent, received;        // messages so far
  uint64_t chunks_out, chunks_in; // through the rings so far
  size_t bytes;
  bool touch, right;
  unsigned char number;
  const struct method* method;
};

static struct side me;

static struct channel* outgoing(struct side* side) { return &side->shared->from[pair.self]; }
static struct channel* incoming(struct side* side) { return &side->shared->from[!pair.self]; }

// ---- the methods ----

struct method {
  const char* name;
  void (*send)(struct side*);
  void (*receive)(struct side*);
  bool shared_out, shared_in; // which buffers are in shared memory
  size_t chunk;               // of rings
  int slots;
  void (*fill)(unsigned char*, const unsigned char*, size_t);
  void (*drain)(unsigned char*, const unsigned char*, size_t); // out of the ring; null: copy
};

static void bring(struct side* side, size_t from, size_t bytes) {
  struct iovec here = {side->out + from, bytes}, there = {pair.meeting->private_in[!pair.self] + from, bytes};
  ssize_t got = process_vm_writev(pair.meeting->process[!pair.self], &here, 1, &there, 1, 0);
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

static void announce(struct side* side) { raise_to(&outgoing(side)->announced, side->sent); }
static void await_announcement(struct side* side) { wait_for(&incoming(side)->announced, side->received); }

static void receive_cma(struct side* side) {
  await_announcement(side);
  fetch(side->in, 0, side->bytes);
}

static void send_cma_half(struct side* side) {
  size_t half = half_of(side->bytes);
  announce(side);
  bring(side, half, side->bytes - half);
  raise_to(&outgoing(side)->pushed, side->sent);
}

static void receive_cma_half(struct side* side) {
  await_announcement(side);
  fetch(side->in, 0, half_of(side->bytes));
  wait_for(&incoming(side)->pushed, side->received);
}

static void receive_pull(struct side* side) {
  await_announcement(side);
  copy(side->in, side->shared_out[!pair.self], side->bytes);
}

static void send_half(struct side* side) {
  size_t half = half_of(side->bytes);
  announce(side);
  copy(side->shared_in[!pair.self] + half, side->out + half, side->bytes - half);
  raise_to(&outgoing(side)->pushed, side->sent);
}

static void receive_half(struct side* side) {
  await_announcement(side);
  copy(side->in, side->shared_out[!pair.self], half_of(side->bytes));
  wait_for(&incoming(side)->pushed, side->received);
}

static void send_push(struct side* side) {
  stream(side->shared_in[!pair.self], side->out, side->bytes);
  announce(side);
}

static void send_ring(struct side* side) {
  const struct method* method = side->method;
  struct channel* channel = outgoing(side);
  for (size_t at = 0; at < side->bytes; at += method->chunk) {
    uint64_t chunk = ++side->chunks_out;
    size_t slot = chunk % (uint64_t)method->slots, left = side->bytes - at;
    if (chunk > (uint64_t)method->slots) wait_for(&channel->taken, chunk - (uint64_t)method->slots);
    method->fill(channel->ring + slot * method->chunk, side->out + at,
                 left < method->chunk ? left : method->chunk);
    raise_to(&channel->filled[slot], chunk);
  }
}

static void receive_ring(struct side* side) {
  const struct method* method = side->method;
  struct channel* channel = incoming(side);
  for (size_t at = 0; at < side->bytes; at += method->chunk) {
    uint64_t chunk = ++side->chunks_in;
    size_t slot = chunk % (uint64_t)method->slots, left = side->bytes - at;
    wait_for(&channel->filled[slot], chunk);
    (method->drain != NULL ? method->drain : copy)(side->in + at, channel->ring + slot * method->chunk,
                                                   left < method->chunk ? left : method->chunk);
    raise_to(&channel->taken, chunk);
  }
}

// A message that has been received has been read as a whole, so the answer may fill any chunk.
static void send_turns(struct side* side) {
  const size_t each = side->method->chunk;
  for (size_t at = 0; at < side->bytes; at += each) {
    copy(side->shared->turns + at, side->out + at, side->bytes - at < each ? side->bytes - at : each);
    raise_to(&side->shared->turned[pair.self][at / each], side->sent);
  }
}

static void receive_turns(struct side* side) {
  const size_t each = side->method->chunk;
  for (size_t at = 0; at < side->bytes; at += each) {
    wait_for(&side->shared->turned[!pair.self][at / each], side->received);
    copy(side->in + at, side->shared->turns + at, side->bytes - at < each ? side->bytes - at : each);
  }
}

// Chunks from what fits in the first-level cache to what leaves the second-level one. Rings are as short as pipelining
// allows, since every slot more is cache less, or longer than a second-level cache, so that the receiver's has dropped a
// slot by the time the sender writes it again: which is faster depends on the processor.
static const struct method methods[] = {
    {.name = "cma_pull", .send = announce, .receive = receive_cma},
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
    {.name = "ring/16K-1M",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 16384,
     .slots = 64,
     .fill = copy},
    {.name = "ring/16K-2M",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 16384,
     .slots = 128,
     .fill = copy},
    {.name = "ring/16K-4M",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 16384,
     .slots = 256,
     .fill = copy},
    {.name = "ring/64K-4M",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 65536,
     .slots = 64,
     .fill = copy},
    {.name = "ring_past/16K-2M",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 16384,
     .slots = 128,
     .fill = copy,
     .drain = stream},
    {.name = "ring_past/16K-4M",
     .send = send_ring,
     .receive = receive_ring,
     .chunk = 16384,
     .slots = 256,
     .fill = copy,
     .drain = stream},
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
    {.name = "turns/8K", .send = send_turns, .receive = receive_turns, .chunk = 8192, .fill = copy},
    {.name = "turns/16K", .send = send_turns, .receive = receive_turns, .chunk = 16384, .fill = copy},
    {.name = "pull", .send = announce, .receive = receive_pull, .shared_out = true},
    {.name = "halves", .send = send_half, .receive = receive_half, .shared_out = true, .shared_in = true},
    {.name = "push_stream", .send = send_push, .receive = await_announcement, .shared_in = true},
};

// ---- measuring ----

static void send(struct side* side) {
  if (side->touch) rewrite_lines(side->out, side->bytes, side->number);
  ++side->sent;
  side->method->send(side);
}

static void receive(struct side* side) {
  ++side->received;
  side->method->receive(side);
  if (side->touch) side->right &= read_lines(side->in, side->bytes, side->number);
}

static void round_trips(void* context, long count) {
  struct side* side = context;
  for (long i = 0; i < count; ++i) {
    if (side->touch) ++side->number;
    if (pair.self == 0) {
      send(side);
      receive(side);
    } else {
      receive(side);
      send(side);
    }
  }
}

static void measure_method(struct side* side, const struct method* method, const struct driver* driver) {
  const char* variant = side->touch ? "rewritten" : "reused";
  side->method = method;
  side->out = method->shared_out ? side->shared_out[pair.self] : pair.out;
  side->in = method->shared_in ? side->shared_in[pair.self] : pair.in;
  side->number = 0;
  side->right = true;
  rewrite_lines(side->out, side->bytes, 0);
  rewrite_lines(side->in, side->bytes, 0xff);
  meet(); // nobody sends before both have prepared their buffers
  double each = seconds_each(round_trips, side, driver);
  meet(); // the last message has been fetched; buffers may change
  require_data(side->right && read_lines(side->in, side->bytes, side->number), method->name, side->bytes);
  if (pair.self == 0) print_value(method->name, variant, side->bytes, each / 2 * 1e6);
}

static void common_line_there_and_back(void* context, long count) {
  static uint64_t number;
  struct side* side = context;
  struct flag* line = &side->shared->common_line;
  for (long i = 0; i < count; ++i, number += 2) {
    if (pair.self == 0) {
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
    if (pair.self == 0) {
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
  struct driver driver = {arguments->budget, agree_by_memory, pair.self == 0, false};
  struct driver alone = {arguments->budget / 4, nobody_else, true, false};
  double one = seconds_each(common_line_there_and_back, side, &driver);
  double two = seconds_each(own_lines_there_and_back, side, &driver);
  if (pair.self == 0) {
    print_value("line/1", "reused", 0, one / 2 * 1e6);
    print_value("line/2", "reused", 0, two / 2 * 1e6);
  }
  for (int i = 0; i < arguments->count; ++i) {
    side->bytes = arguments->sizes[i];
    if (side->bytes < cache_line) continue; // what fits in a line has the line as its limit
    side->out = pair.out;
    side->in = pair.in;
    if (pair.self == 0 && wants(arguments, "rewritten")) {
      double each = seconds_each(touch_alone, side, &alone);
      print_value("touch", "rewritten", side->bytes, each * 1e6);
    }
    for (size_t method = 0; method < sizeof methods / sizeof methods[0]; ++method) {
      // The sender does not know which chunks of a message have been read, so it fills each once.
      if (methods[method].send == send_turns && side->bytes > max_slots * methods[method].chunk) continue;
      // A smaller chunk has the message in one piece already.
      if (method > 0 && methods[method].fill && methods[method - 1].fill == methods[method].fill &&
          methods[method - 1].chunk >= side->bytes && methods[method - 1].chunk < methods[method].chunk)
        continue;
      if (!pair.cma && strncmp(methods[method].name, "cma", 3) == 0) continue;
      side->touch = false;
      if (wants(arguments, "reused")) measure_method(side, &methods[method], &driver);
      side->touch = true;
      if (wants(arguments, "rewritten")) measure_method(side, &methods[method], &driver);
    }
  }
}

int main(int argc, char** argv) {
  struct arguments arguments = read_arguments(argc, argv);
  size_t largest = largest_size(&arguments) + 4096;
  me.shared = new_shared(sizeof *me.shared);
  fill_with_numbers(me.shared->turns, ring_bytes);
  for (int i = 0; i < 2; ++i) {
    fill_with_numbers(me.shared->from[i].ring, ring_bytes);
    fill_with_numbers(me.shared_out[i] = new_shared(largest), largest);
    fill_with_numbers(me.shared_in[i] = new_shared(largest), largest);
  }
  start_pair(largest);
  measure_all(&me, &arguments);
  return end_pair();
}
