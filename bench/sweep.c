// What other people's benchmarks do: one process that goes through all sizes in ascending order, with a fixed
// number of repetitions each. Microseconds of one operation: half a round trip between ranks 0 and 1, or one
// call of a collective on all ranks, the mean over the ranks.
//
//   sweep SLOT REPETITIONS SIZES OPERATIONS
//
// REPETITIONS and OPERATIONS are lists. Nothing is left out as a warm-up; between two sizes there is a barrier.
// In each repetition a rank writes one byte of every line of what it sends and reads one of every line of what it
// has received, within the measured time.
#include "operations.h"

static void send_to(struct operands* my, int rank) {
  write_block(my);
  MPI_Send(my->out, (int)my->bytes, MPI_BYTE, rank, 0, MPI_COMM_WORLD);
}
static void receive_from(struct operands* my, int rank) {
  MPI_Recv(my->in, (int)my->bytes, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  read_block(my);
}
static void call_ping_pong(struct operands* my) {
  if (my->world.rank == 0) send_to(my, 1);
  if (my->world.rank < 2) receive_from(my, 1 - my->world.rank);
  if (my->world.rank == 1) send_to(my, 0);
}
static const struct collective ping_pong = {
    .name = "latency", .write = write_nothing, .call = call_ping_pong, .read = read_nothing};

static void measure(struct operands* my, const struct collective* what, const char* repetitions) {
  long count = atol(repetitions);
  my->right = true;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now();
  for (long i = 0; i < count; ++i) execute(my, what->write, what->call, what->read);
  double each = (now() - start) / (double)count, sum = 0;
  require_data(my->right, what->name, my->bytes);
  int ranks = what == &ping_pong ? 2 : my->world.size;
  if (my->world.rank >= ranks) each = 0;
  MPI_Reduce(&each, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (my->world.rank == 0)
    print_value(what->name, repetitions, my->bytes, sum / ranks / (what == &ping_pong ? 2 : 1) * 1e6);
}

static void measure_sizes(struct operands* my, const struct collective* what, const char* repetitions,
                          const struct arguments* arguments) {
  for (int at = 0; at < arguments->count; ++at) {
    my->bytes = arguments->sizes[at];
    if (has_sizes(what) ? my->bytes >= 4 : at == 0) measure(my, what, repetitions);
  }
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct arguments which = {.variants = argc > 4 ? argv[4] : "latency"};
  struct operands my = new_operands(world, largest_size(&arguments));
  char list[64];
  snprintf(list, sizeof list, "%s", arguments.variants);
  for (char* repetitions = strtok(list, ","); repetitions; repetitions = strtok(NULL, ",")) {
    if (wants(&which, ping_pong.name)) measure_sizes(&my, &ping_pong, repetitions, &arguments);
    for (int i = 0; i < count_collectives; ++i)
      if (wants(&which, collectives[i].name)) measure_sizes(&my, &collectives[i], repetitions, &arguments);
  }
  MPI_Finalize();
  return 0;
}
