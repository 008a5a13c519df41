// How the time of a collective grows with the size: microseconds of one call, all sizes of an operation measured in fine
// alternation, so that neighbours can be compared. The benchmark driver starts it once for each number of ranks.
//
//   cliffs SLOT - SIZES OPERATIONS
#include "alternation.h"

static void measure(struct operands* my, const struct collective* what, const struct arguments* arguments) {
  struct way ways[sizeof arguments->sizes / sizeof *arguments->sizes];
  int count = has_sizes(what) ? arguments->count : 1;
  for (int i = 0; i < count; ++i)
    ways[i] = (struct way){.write = what->write,
                           .call = what->call,
                           .read = what->read,
                           .bytes = has_sizes(what) ? arguments->sizes[i] : 0};
  my->right = true;
  measure_in_alternation(my, ways, count, arguments->budget);
  require_data(my->right, what->name, my->bytes);
  for (int i = 0; i < count && my->world.rank == 0; ++i)
    print_value(what->name, "-", ways[i].bytes, ways[i].seconds * 1e6);
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct arguments which = {.variants = argc > 4 ? argv[4] : "allreduce"};
  struct operands my = new_operands(world, largest_size(&arguments));
  for (int i = 0; i < count_collectives; ++i)
    if (wants(&which, collectives[i].name)) measure(&my, &collectives[i], &arguments);
  MPI_Finalize();
  return 0;
}
