// Every rank has a different number, and all ranks agree on the size.
#include "check.h"

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank = -1, size = -1, sum = -1, largest = -1;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(rank >= 0 && rank < size);
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  OK(MPI_Allreduce(&size, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  CHECK(sum == size * (size - 1) / 2);
  CHECK(largest == size);
  OK(MPI_Finalize());
  return 0;
}
