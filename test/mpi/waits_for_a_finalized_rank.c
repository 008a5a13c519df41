// Rank 1 calls MPI_Finalize at once. The argument says what the other ranks do: wait for rank 1 forever in
// some kind of call, or wait for a rank that is only slow.
#include "check.h"
#include <string.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const char* call = count > 1 ? arguments[1] : "";
  OK(MPI_Init(&count, &arguments));
  int rank, size, word = 0;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  MPI_Comm pair;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &pair));
  if (rank != 1) {
    if (strcmp(call, "barrier") == 0) MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(call, "send") == 0 && rank == 0) MPI_Ssend(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    if (strcmp(call, "other") == 0) MPI_Recv(&word, 1, MPI_INT, 1, 7, pair, MPI_STATUS_IGNORE);
    if (strcmp(call, "busy") == 0 && rank == 0)
      MPI_Recv(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(call, "slow") == 0 && rank == 0)
      MPI_Recv(&word, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 2) sleep(5); // outside MPI
    if (strcmp(call, "slow") == 0 && rank == 2) MPI_Send(&word, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  }
  OK(MPI_Finalize());
  return 0;
}
