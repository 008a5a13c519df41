// Every collective again and again, each size for a given time: microseconds of one call, the mean over the ranks.
//
//   steady BUDGET_MS VARIANTS SIZES OPERATIONS       (OPERATIONS: as sweep.c)
//
// The calls of a batch end with a barrier, so that a batch lasts until the last rank has what it is to get: the root of a broadcast
// may be far ahead of the others. What a rank writes and reads is that of sweep.c, within the measured time.
#include "operations.h"

struct calls {
  struct operands* my;
  const struct collective* what;
};

static void call(void* context, long count) {
  struct calls* calls = context;
  for (long i = 0; i < count; ++i)
    execute(calls->my, calls->what->write, calls->what->call, calls->what->read);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void measure(struct operands* my, const struct collective* what, const char* variant, double budget) {
  struct driver driver = driver_of(my->world, budget);
  struct calls calls = {my, what};
  double sum = 0, each = seconds_each(call, &calls, &driver);
  require_data(my->right, what->name, my->bytes);
  MPI_Reduce(&each, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (my->world.rank == 0)
    print_value(what->name, variant, has_sizes(what) ? my->bytes : 0, sum / my->world.size * 1e6);
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct arguments which = {.variants = argc > 4 ? argv[4] : "barrier"};
  struct operands my = new_operands(world, largest_size(&arguments));
  for (int i = 0; i < count_collectives; ++i) {
    const struct collective* what = &collectives[i];
    for (int at = 0; at < arguments.count && wants(&which, what->name); ++at) {
      my.bytes = arguments.sizes[at];
      if (has_sizes(what) ? my.bytes >= 4 : at == 0) measure(&my, what, arguments.variants, arguments.budget);
    }
  }
  MPI_Finalize();
  return 0;
}
