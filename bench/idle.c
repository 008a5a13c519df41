// The cost of a waiting rank: the share of a processor (per cent) that all threads of process 1 use while it is
// blocked in MPI_Recv. The sizes on the command line are milliseconds that process 0 sleeps before it sends.
#include "mpi_measure.h"

static double processor_time(void) { // seconds, of all threads of this process
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  require_ranks(world, 2);
  struct arguments arguments = read_arguments(argc, argv);
  for (int i = 0; i < arguments.count; ++i) {
    long milliseconds = (long)arguments.sizes[i];
    long times = milliseconds >= 500 ? 1 : 500 / milliseconds;
    double used = 0, waited = 0;
    for (long time = 0; time <= times; ++time) { // the first one is a rehearsal
      char message = 0;
      MPI_Barrier(MPI_COMM_WORLD);
      if (world.rank == 0) {
        struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
        nanosleep(&pause, NULL);
        MPI_Send(&message, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        continue;
      }
      double start = now(), processor = processor_time();
      MPI_Recv(&message, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (time == 0) continue;
      used += processor_time() - processor;
      waited += now() - start;
    }
    double share = used / (waited > 0 ? waited : 1) * 100;
    MPI_Bcast(&share, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    if (world.rank == 0) print_value("idle", "-", (size_t)milliseconds, share);
  }
  MPI_Finalize();
  return 0;
}
