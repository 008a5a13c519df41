// On two machines: the last rank dies before the other one has talked to it, whose first operations with it then fail.
#include "check.h"

#include <signal.h>
#include <unistd.h>

int main(int count, char** arguments) {
  OK(MPI_Init(&count, &arguments));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (rank == size - 1) {
    sleep(1); // the others have come to their own sleep
    raise(SIGKILL);
  }
  sleep(3); // the death is known by then
  enum { longest = 1 << 20 };
  static char buffer[longest];
  // A short one may be taken before the failure is noticed.
  (void)MPI_Send(buffer, 4, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
  (void)MPI_Send(buffer, 1000, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
  CHECK(MPI_Send(buffer, longest, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
  CHECK(MPI_Recv(buffer, 4, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  OK(MPI_Finalize());
  printf("rank %d has finished\n", rank);
  fflush(stdout);
  sleep(1); // Slurm ends the step when this process does, and drops what it has not read
  return 0;
}
