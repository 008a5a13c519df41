// A rank that sleeps while collectives are under way, some of which consist of messages (here: an operation of the
// program) and some of which use shared memory, asks all of them before it sleeps.
#define _DEFAULT_SOURCE
#include "check.h"

#include <unistd.h>

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

int main(int argc, char** argv) {
  int rank, size;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  MPI_Op operation;
  OK(MPI_Op_create(add, 1, &operation));
  for (int late = 0; late < size; ++late) {
    int one = 1, sums[2] = {0, 0};
    MPI_Request requests[3];
    if (rank == late) usleep(50000);
    OK(MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, operation, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Iallreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK(sums[0] == size && sums[1] == size);
  }
  OK(MPI_Op_free(&operation));
  OK(MPI_Finalize());
  return 0;
}
