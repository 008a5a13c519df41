// Ranks 0 and 1 exchange messages of 4 KiB to 1 MiB until they are killed, for tests that inspect a running
// job.
#include "check.h"

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  static char buffer[1 << 20];
  while (rank < 2)
    for (int bytes = 4096; bytes <= 1 << 20; bytes *= 4) {
      if (rank == 0) OK(MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
      OK(MPI_Recv(buffer, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      if (rank == 1) OK(MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD));
    }
  OK(MPI_Finalize());
  return 0;
}
