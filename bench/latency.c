// Ping-pong between ranks 0 and 1: microseconds of half a round trip. With more ranks, also between 2 and 3
// and so on, at the same time: the mean of all pairs.
//
// Each rank has one buffer to send from and one to receive into. "reused": nothing touches them in between,
// so what is sent is unmodified and lies in the sender's cache. "rewritten": a rank writes one byte of every
// line before it sends, and reads one byte of every line after it has received, as a program does that
// computes; both passes are inside the time, since where the data lies afterwards is a part of what the
// receiver pays.
#include "mpi_measure.h"

struct exchange {
  unsigned char *out, *in;
  size_t bytes;
  struct world world;
  int peer;
  bool touch, right;
  unsigned char number; // of the message, and what its lines hold
};

static void send(struct exchange* state) {
  if (state->touch) rewrite_lines(state->out, state->bytes, state->number);
  MPI_Send(state->out, (int)state->bytes, MPI_BYTE, state->peer, 0, MPI_COMM_WORLD);
}

static void receive(struct exchange* state) {
  MPI_Recv(state->in, (int)state->bytes, MPI_BYTE, state->peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (state->touch) state->right &= read_lines(state->in, state->bytes, state->number);
}

static void round_trips(void* context, long count) {
  struct exchange* state = context;
  for (long i = 0; i < count; ++i) {
    if (state->touch) ++state->number;
    if (state->world.rank < state->peer) {
      send(state);
      receive(state);
    } else {
      receive(state);
      send(state);
    }
  }
}

static void measure(struct exchange* state, const char* variant, const struct driver* driver) {
  state->number = 0;
  state->right = true;
  rewrite_lines(state->out, state->bytes, 0);
  rewrite_lines(state->in, state->bytes, 0xff);
  double each = seconds_each(round_trips, state, driver);
  require_data(state->right && read_lines(state->in, state->bytes, state->number), variant, state->bytes);
  double sum = 0;
  MPI_Reduce(&each, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (state->world.rank == 0)
    print_value("latency", variant, state->bytes, sum / state->world.size / 2 * 1e6);
}

/// One kind of buffers, every size: "reused" and "rewritten", with `prefix` before the names.
static void measure_sizes(struct exchange* state, const struct arguments* arguments, const char* prefix) {
  struct driver driver = driver_of(state->world, arguments->budget);
  for (int i = 0; i < arguments->count; ++i) {
    state->bytes = arguments->sizes[i];
    for (int touch = 0; touch < 2; ++touch) {
      char variant[32];
      snprintf(variant, sizeof variant, "%s%s", prefix, touch ? "rewritten" : "reused");
      state->touch = touch;
      if (wants(arguments, variant) && (state->bytes > 0 || !touch)) measure(state, variant, &driver);
    }
  }
}

int main(int argc, char** argv) {
  struct exchange state = {.world = start_mpi(&argc, &argv)};
  require_ranks(state.world, 0);
  struct arguments arguments = read_arguments(argc, argv);
  size_t largest = largest_size(&arguments);
  state.peer = state.world.rank ^ 1;
  state.out = new_buffer(largest);
  state.in = new_buffer(largest);
  measure_sizes(&state, &arguments, "");
  if (wants(&arguments, "alloc-reused") || wants(&arguments, "alloc-rewritten")) {
    unsigned char* both; // one piece, since some libraries align no better than malloc does
    size_t each = (largest + 8191) / 4096 * 4096;
    MPI_Alloc_mem((MPI_Aint)(2 * each + 4096), MPI_INFO_NULL, &both);
    state.out = both + (4096 - (uintptr_t)both % 4096) % 4096;
    state.in = state.out + each;
    fill_with_numbers(state.out, 2 * each);
    measure_sizes(&state, &arguments, "alloc-");
    MPI_Free_mem(both);
  }
  MPI_Finalize();
  return 0;
}
