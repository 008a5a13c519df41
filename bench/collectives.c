// Barrier and allreduce of 4 bytes over all ranks: microseconds of one call.
#include "mpi_measure.h"

static void barriers(void* context, long count) {
  (void)context;
  for (long i = 0; i < count; ++i) MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduces(void* context, long count) {
  struct world* world = context;
  for (long i = 0; i < count; ++i) {
    int mine = world->rank + (int)(i & 0xff), sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int expected = world->size * (world->size - 1) / 2 + world->size * (int)(i & 0xff);
    require_data(sum == expected, "allreduce", sizeof sum);
  }
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct driver driver = driver_of(world, arguments.budget);
  double barrier = seconds_each(barriers, &world, &driver);
  if (world.rank == 0) print_value("barrier", "-", 0, barrier * 1e6);
  double allreduce = seconds_each(allreduces, &world, &driver);
  if (world.rank == 0) print_value("allreduce", "-", 4, allreduce * 1e6);
  MPI_Finalize();
  return 0;
}
