// A rank that has waited for a long time, in any kind of call, continues when the message arrives: a small, a
// medium and a large message, and a barrier.
#include "check.h"

#include <unistd.h>

enum { small = 8, medium = 5000, large = 1 << 20, late_us = 20000 };

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  static char buffer[large];
  const int sizes[] = {small, medium, large};
  for (int round = 0; round < 2 * size; ++round) {
    int late = round % size;
    for (int s = 0; s < 3; ++s) {
      if (rank == late) {
        usleep(late_us);
        for (int to = 0; to < size; ++to)
          if (to != rank) OK(MPI_Send(buffer, sizes[s], MPI_CHAR, to, s, MPI_COMM_WORLD));
      } else {
        OK(MPI_Recv(buffer, sizes[s], MPI_CHAR, late, s, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
    }
    if (rank == late) usleep(late_us);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Finalize());
  return 0;
}
