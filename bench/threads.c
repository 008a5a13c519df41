// MPI_THREAD_MULTIPLE: pairs of threads of two ranks that all communicate at the same time.
//
//   threads SLOT VARIANTS SIZES NAMES
//
// A variant is the number of threads of each rank, which share the rank's core. Thread t of rank 0 exchanges messages
// with thread t of rank 1, told from those of the others by their tag. NAMES:
//
// latency   microseconds of half a round trip of one pair, while all pairs do the same
// rate      messages that all threads of rank 0 together send in a second, in windows of 32 with an answer to each
//
// A rank writes one byte of every line before it sends and reads one of every line after it has received, within the
// measured time.
#include "mpi_measure.h"

#include <pthread.h>

enum { most_threads = 16, window = 32 };

struct pair {
  int index, rank;
  size_t bytes;
  unsigned char *out, *in;
  bool wrong;
};

struct team {
  struct pair pairs[most_threads];
  int threads;
  void (*work)(struct pair*, long count);
  long count; // negative: the threads end
  pthread_barrier_t begin, end;
};
static struct team team;

static void send_to_other(struct pair* pair) {
  MPI_Send(pair->out, (int)pair->bytes, MPI_BYTE, 1 - pair->rank, pair->index, MPI_COMM_WORLD);
}
static void receive_from_other(struct pair* pair) {
  MPI_Recv(pair->in, (int)pair->bytes, MPI_BYTE, 1 - pair->rank, pair->index, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

static void round_trips(struct pair* pair, long count) {
  for (long i = 0; i < count; ++i) {
    if (pair->rank == 0) {
      rewrite_lines(pair->out, pair->bytes, (unsigned char)i);
      send_to_other(pair);
    }
    receive_from_other(pair);
    pair->wrong |= !read_lines(pair->in, pair->bytes, (unsigned char)i);
    if (pair->rank == 1) {
      rewrite_lines(pair->out, pair->bytes, (unsigned char)i);
      send_to_other(pair);
    }
  }
}

static void windows(struct pair* pair, long count) {
  MPI_Request requests[window];
  const int other = 1 - pair->rank, bytes = (int)pair->bytes;
  char answer = 0;
  for (long i = 0; i < count; ++i) {
    if (pair->rank == 0) {
      rewrite_lines(pair->out, pair->bytes, (unsigned char)i);
      for (int j = 0; j < window; ++j)
        MPI_Isend(pair->out, bytes, MPI_BYTE, other, pair->index, MPI_COMM_WORLD, &requests[j]);
      MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
      MPI_Recv(&answer, 1, MPI_BYTE, other, pair->index, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      for (int j = 0; j < window; ++j)
        MPI_Irecv(pair->in + (size_t)j * pair->bytes, bytes, MPI_BYTE, other, pair->index, MPI_COMM_WORLD,
                  &requests[j]);
      MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
      pair->wrong |= !read_lines(pair->in + (window - 1) * pair->bytes, pair->bytes, (unsigned char)i);
      MPI_Send(&answer, 1, MPI_BYTE, other, pair->index, MPI_COMM_WORLD);
    }
  }
}

static void* run_thread(void* argument) {
  for (;;) {
    pthread_barrier_wait(&team.begin);
    if (team.count < 0) return NULL;
    team.work(argument, team.count);
    pthread_barrier_wait(&team.end);
  }
}

/// The calling thread is the first of the team.
static void repeat_in_threads(void* context, long count) {
  (void)context;
  team.count = count;
  pthread_barrier_wait(&team.begin);
  if (count < 0) return;
  team.work(&team.pairs[0], count);
  pthread_barrier_wait(&team.end);
}

static void measure(struct world world, const struct arguments* arguments, const char* names,
                    const char* variant) {
  const struct {
    const char* name;
    void (*work)(struct pair*, long);
  } kinds[] = {{"latency", round_trips}, {"rate", windows}};
  struct driver driver = driver_of(world, arguments->budget);
  driver.crowded = true; // threads wait for the core: the mean counts
  pthread_t others[most_threads];
  pthread_barrier_init(&team.begin, NULL, (unsigned)team.threads);
  pthread_barrier_init(&team.end, NULL, (unsigned)team.threads);
  for (int i = 1; i < team.threads; ++i) pthread_create(&others[i], NULL, run_thread, &team.pairs[i]);
  for (int kind = 0; kind < 2; ++kind) {
    if (strstr(names, kinds[kind].name) == NULL) continue;
    for (int size = 0; size < arguments->count; ++size) {
      const size_t bytes = arguments->sizes[size];
      team.work = kinds[kind].work;
      for (int i = 0; i < team.threads; ++i) team.pairs[i].bytes = bytes, team.pairs[i].wrong = false;
      MPI_Barrier(MPI_COMM_WORLD);
      const double each = seconds_each(repeat_in_threads, NULL, &driver);
      for (int i = 0; i < team.threads; ++i) require_data(!team.pairs[i].wrong, kinds[kind].name, bytes);
      if (world.rank == 0)
        print_value(kinds[kind].name, variant, bytes,
                    kind == 0 ? each / 2 * 1e6 : team.threads * window / each);
    }
  }
  repeat_in_threads(NULL, -1);
  for (int i = 1; i < team.threads; ++i) pthread_join(others[i], NULL);
  pthread_barrier_destroy(&team.begin);
  pthread_barrier_destroy(&team.end);
}

int main(int argc, char** argv) {
  struct world world = init_mpi_for(&argc, &argv, MPI_THREAD_MULTIPLE);
  introduce(world);
  require_ranks(world, 2);
  struct arguments arguments = read_arguments(argc, argv);
  const char* names = argc > 4 ? argv[4] : "latency,rate";
  size_t most = 64;
  for (int i = 0; i < arguments.count; ++i) most = arguments.sizes[i] > most ? arguments.sizes[i] : most;
  for (int i = 0; i < most_threads; ++i)
    team.pairs[i] = (struct pair){
        .index = i, .rank = world.rank, .out = new_buffer(most), .in = new_buffer(most * window)};
  for (const char* text = arguments.variants; *text;) {
    char variant[16] = "";
    team.threads = atoi(text);
    if (team.threads < 1 || team.threads > most_threads) MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(variant, sizeof variant, "%d", team.threads);
    measure(world, &arguments, names, variant);
    text += strcspn(text, ",");
    text += *text == ',';
  }
  MPI_Finalize();
  return 0;
}
