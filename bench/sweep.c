// What other people's benchmarks do: one process that goes through all sizes in ascending order, with a fixed
// number of repetitions each. Microseconds of one operation: half a round trip between ranks 0 and 1, or one
// call of a collective on all ranks, the mean over the ranks.
//
//   sweep SLOT REPETITIONS SIZES OPERATIONS
//
// REPETITIONS and OPERATIONS are lists. Nothing is left out as a warm-up; between two sizes there is a barrier.
// In each repetition a rank writes one byte of every line of what it sends and reads one of every line of what it
// has received, within the measured time.
#include "mpi_measure.h"

struct sweep {
  struct world world;
  unsigned char *out, *in;
  size_t bytes; // of each rank's contribution, or to each rank
  unsigned char number;
  bool right;
};

typedef void operation(struct sweep*);

static void write_out(struct sweep* sweep, size_t bytes) { rewrite_lines(sweep->out, bytes, sweep->number); }
static void read_in(struct sweep* sweep, size_t bytes) {
  sweep->right &= read_lines(sweep->in, bytes, sweep->number);
}

// A block for each rank, or one from each.
static void write_for_all(struct sweep* sweep) {
  for (int rank = 0; rank < sweep->world.size; ++rank)
    rewrite_lines(sweep->out + (size_t)rank * sweep->bytes, sweep->bytes, sweep->number);
}
static void read_from_all(struct sweep* sweep) {
  for (int rank = 0; rank < sweep->world.size; ++rank)
    sweep->right &= read_lines(sweep->in + (size_t)rank * sweep->bytes, sweep->bytes, sweep->number);
}

static void send_to(struct sweep* sweep, int rank) {
  write_out(sweep, sweep->bytes);
  MPI_Send(sweep->out, (int)sweep->bytes, MPI_BYTE, rank, 0, MPI_COMM_WORLD);
}
static void receive_from(struct sweep* sweep, int rank) {
  MPI_Recv(sweep->in, (int)sweep->bytes, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  read_in(sweep, sweep->bytes);
}
static void ping_pong(struct sweep* sweep) {
  if (sweep->world.rank == 0) send_to(sweep, 1);
  if (sweep->world.rank < 2) receive_from(sweep, 1 - sweep->world.rank);
  if (sweep->world.rank == 1) send_to(sweep, 0);
}
static void barrier(struct sweep* sweep) {
  (void)sweep;
  MPI_Barrier(MPI_COMM_WORLD);
}
static void broadcast(struct sweep* sweep) {
  unsigned char* buffer = sweep->world.rank == 0 ? sweep->out : sweep->in;
  if (sweep->world.rank == 0) write_out(sweep, sweep->bytes);
  MPI_Bcast(buffer, (int)sweep->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (sweep->world.rank != 0) read_in(sweep, sweep->bytes);
}
// The bitwise or of equal bytes is that byte: so the results of reductions can be checked as the others are.
static void reduce(struct sweep* sweep) {
  write_out(sweep, sweep->bytes);
  MPI_Reduce(sweep->out, sweep->in, (int)(sweep->bytes / 4), MPI_INT32_T, MPI_BOR, 0, MPI_COMM_WORLD);
  if (sweep->world.rank == 0) read_in(sweep, sweep->bytes / 4 * 4);
}
static void allreduce(struct sweep* sweep) {
  write_out(sweep, sweep->bytes);
  MPI_Allreduce(sweep->out, sweep->in, (int)(sweep->bytes / 4), MPI_INT32_T, MPI_BOR, MPI_COMM_WORLD);
  read_in(sweep, sweep->bytes / 4 * 4);
}
static void allgather(struct sweep* sweep) {
  write_out(sweep, sweep->bytes);
  MPI_Allgather(sweep->out, (int)sweep->bytes, MPI_BYTE, sweep->in, (int)sweep->bytes, MPI_BYTE,
                MPI_COMM_WORLD);
  read_from_all(sweep);
}
static void alltoall(struct sweep* sweep) {
  write_for_all(sweep);
  MPI_Alltoall(sweep->out, (int)sweep->bytes, MPI_BYTE, sweep->in, (int)sweep->bytes, MPI_BYTE,
               MPI_COMM_WORLD);
  read_from_all(sweep);
}
static void gather(struct sweep* sweep) {
  write_out(sweep, sweep->bytes);
  MPI_Gather(sweep->out, (int)sweep->bytes, MPI_BYTE, sweep->in, (int)sweep->bytes, MPI_BYTE, 0,
             MPI_COMM_WORLD);
  if (sweep->world.rank == 0) read_from_all(sweep);
}
static void scatter(struct sweep* sweep) {
  if (sweep->world.rank == 0) write_for_all(sweep);
  MPI_Scatter(sweep->out, (int)sweep->bytes, MPI_BYTE, sweep->in, (int)sweep->bytes, MPI_BYTE, 0,
              MPI_COMM_WORLD);
  read_in(sweep, sweep->bytes);
}

static const struct {
  const char* name;
  operation* run;
} operations[] = {
    {"latency", ping_pong}, {"barrier", barrier},     {"broadcast", broadcast},
    {"reduce", reduce},     {"allreduce", allreduce}, {"allgather", allgather},
    {"alltoall", alltoall}, {"gather", gather},       {"scatter", scatter},
};
enum { count_operations = sizeof operations / sizeof *operations };

static void measure(struct sweep* sweep, int which, const char* repetitions) {
  long count = atol(repetitions);
  sweep->right = true;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now();
  for (long i = 0; i < count; ++i) {
    ++sweep->number;
    operations[which].run(sweep);
  }
  double each = (now() - start) / (double)count, sum = 0;
  require_data(sweep->right, operations[which].name, sweep->bytes);
  int ranks = which == 0 ? 2 : sweep->world.size;
  if (sweep->world.rank >= ranks) each = 0;
  MPI_Reduce(&each, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (sweep->world.rank == 0)
    print_value(operations[which].name, repetitions, sweep->bytes, sum / ranks / (which == 0 ? 2 : 1) * 1e6);
}

int main(int argc, char** argv) {
  struct sweep sweep = {.world = init_mpi(&argc, &argv)};
  introduce(sweep.world);
  struct arguments arguments = read_arguments(argc, argv);
  struct arguments which = {.variants = argc > 4 ? argv[4] : "latency"};
  size_t all = largest_size(&arguments) * (size_t)sweep.world.size;
  sweep.out = new_buffer(all);
  sweep.in = new_buffer(all);
  char list[64];
  snprintf(list, sizeof list, "%s", arguments.variants);
  for (char* repetitions = strtok(list, ","); repetitions; repetitions = strtok(NULL, ","))
    for (int i = 0; i < count_operations; ++i) {
      if (!wants(&which, operations[i].name)) continue;
      for (int at = 0; at < arguments.count; ++at) {
        sweep.bytes = arguments.sizes[at];
        bool has_sizes = operations[i].run != barrier;
        if (has_sizes ? sweep.bytes >= 4 : at == 0) measure(&sweep, i, repetitions);
      }
    }
  MPI_Finalize();
  return 0;
}
