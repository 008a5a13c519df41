// Messages in a row between ranks 0 and 1 (and 2 and 3 ...): windows of nonblocking messages, each window
// answered by an empty message. Values: "stream", MB/s one way; "both", MB/s of both ways together, at the
// same time; "rate", messages a second. With several pairs, their sum.
//
//   stream BUDGET_MS VARIANTS SIZES VALUES
//
// Every message of a window has a buffer of its own, as in a program that sends different things. "reused"
// and "rewritten" are those of latency.c: with "rewritten", the lines are written before each MPI_Isend and
// read after MPI_Waitall, inside the time. With "one-buffer", a window always has 64 messages, all sent from one
// buffer and received into one, as in other benchmarks of bandwidth.
#include "mpi_measure.h"
#include "windows.h"

struct streams {
  unsigned char *out, *in;
  MPI_Request requests[2 * longest_window];
  size_t bytes, distance; // of buffers
  struct world world;
  int peer, window;
  const char* variant;
  bool touch, right, sends, receives;
  unsigned char number;
};

static void start_receives(struct streams* state, MPI_Request* requests) {
  for (int i = 0; i < state->window; ++i)
    MPI_Irecv(state->in + (size_t)i * state->distance, (int)state->bytes, MPI_BYTE, state->peer, 0,
              MPI_COMM_WORLD, &requests[i]);
}

static void start_sends(struct streams* state, MPI_Request* requests) {
  for (int i = 0; i < state->window; ++i) {
    unsigned char* buffer = state->out + (size_t)i * state->distance;
    if (state->touch) rewrite_lines(buffer, state->bytes, state->number);
    MPI_Isend(buffer, (int)state->bytes, MPI_BYTE, state->peer, 0, MPI_COMM_WORLD, &requests[i]);
  }
}

static bool read_window(const struct streams* state) {
  bool right = true;
  for (int i = 0; i < state->window; ++i)
    right &= read_lines(state->in + (size_t)i * state->distance, state->bytes, state->number);
  return right;
}

static void answer(const struct streams* state) {
  if (state->receives) MPI_Send(NULL, 0, MPI_BYTE, state->peer, 1, MPI_COMM_WORLD);
  if (state->sends) MPI_Recv(NULL, 0, MPI_BYTE, state->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void windows(void* context, long count) {
  struct streams* state = context;
  for (long i = 0; i < count; ++i) {
    int started = 0;
    if (state->touch) ++state->number;
    if (state->receives) start_receives(state, state->requests), started += state->window;
    if (state->sends) start_sends(state, state->requests + started), started += state->window;
    MPI_Waitall(started, state->requests, MPI_STATUSES_IGNORE);
    if (state->receives && state->touch) state->right &= read_window(state);
    answer(state);
  }
}

/// `directions`: 1 when the lower rank of a pair sends, 2 when both do.
static void measure(struct streams* state, const struct arguments* arguments, const char* name,
                    int directions) {
  if (!wants(arguments, state->variant)) return;
  bool lower = state->world.rank < state->peer;
  state->sends = directions == 2 || lower;
  state->receives = directions == 2 || !lower;
  state->number = 0;
  state->right = true;
  for (int i = 0; i < state->window; ++i) {
    rewrite_lines(state->out + (size_t)i * state->distance, state->bytes, 0);
    rewrite_lines(state->in + (size_t)i * state->distance, state->bytes, 0xff);
  }
  struct driver driver = driver_of(state->world, arguments->budget);
  double each = seconds_each(windows, state, &driver);
  require_data(!state->receives || (state->right && read_window(state)), name, state->bytes);
  double messages = lower ? directions * state->window / each : 0, sum = 0;
  MPI_Reduce(&messages, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (state->world.rank != 0) return;
  print_value(name, state->variant, state->bytes,
              strcmp(name, "rate") == 0 ? sum : sum * (double)state->bytes / 1e6);
}

int main(int argc, char** argv) {
  struct streams state = {.world = start_mpi(&argc, &argv)};
  require_ranks(state.world, 0);
  struct arguments arguments = read_arguments(argc, argv);
  const char* values = argc > 4 ? argv[4] : "stream,both,rate";
  size_t space = space_of_windows(&arguments);
  state.peer = state.world.rank ^ 1;
  state.out = new_buffer(space);
  state.in = new_buffer(space);
  for (int i = 0; i < arguments.count; ++i) {
    state.bytes = arguments.sizes[i];
    if (state.bytes == 0) continue;
    enum { reused, rewritten, one_buffer, variants };
    static const char* const names[variants] = {"reused", "rewritten", "one-buffer"};
    for (int variant = reused; variant < variants; ++variant) {
      state.variant = names[variant];
      state.touch = variant == rewritten;
      state.distance = variant == one_buffer ? 0 : distance_of(state.bytes);
      state.window = variant == one_buffer ? longest_window : window_of(state.bytes);
      if (strstr(values, "stream")) measure(&state, &arguments, "stream", 1);
      if (strstr(values, "both")) measure(&state, &arguments, "both", 2);
      if (strstr(values, "rate")) measure(&state, &arguments, "rate", 1);
    }
  }
  MPI_Finalize();
  return 0;
}
