// Endless traffic of every size, for the kill tests. Rank 0 prints "running" when it has received from all
// ranks.
#include "check.h"

#include <string.h>

enum { largest = 1 << 20 };

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  char* out = malloc(largest);
  char* in = malloc(largest);
  memset(out, rank, largest);
  for (unsigned round = 0;; ++round) {
    const int bytes = 1 << (round % 21), step = 1 + (int)(round % (unsigned)size);
    OK(MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + step) % size, 1, in, bytes, MPI_BYTE,
                    (rank + size * 2 - step) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (round == 0) {
      int all = 0;
      OK(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
      if (rank == 0) {
        puts("running");
        fflush(stdout);
      }
    }
  }
}
