// Several MPI_Comm_idup are under way at once, on one communicator and on several; they are completed in any
// order and by any call.
#include "check.h"

enum { count = 6 };

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  MPI_Comm other, made[count], between;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  MPI_Request requests[count];
  // Processes start the calls on the two communicators in different orders, so none of the calls may wait.
  for (int i = 0; i < count; ++i) {
    int at = rank % 2 ? count - 1 - i : i;
    OK(MPI_Comm_idup(at < count / 2 ? MPI_COMM_WORLD : other, &made[at], &requests[at]));
  }
  // Then a blocking dup on the same communicator.
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &between));
  int flag = 0;
  while (!flag) OK(MPI_Test(&requests[count - 1], &flag, MPI_STATUS_IGNORE));
  OK(MPI_Waitall(count - 1, requests, MPI_STATUSES_IGNORE));
  // Odd ranks started the duplicates of each communicator in the opposite order, so match them accordingly.
  for (int i = 0; i < count; ++i) {
    int result;
    OK(MPI_Comm_compare(MPI_COMM_WORLD, made[i], &result));
    CHECK(result == MPI_CONGRUENT);
  }
  for (int i = 0; i < count; ++i) {
    MPI_Comm comm = made[rank % 2 ? (i < count / 2 ? count / 2 - 1 - i : count + count / 2 - 1 - i) : i];
    int sum = 0;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&comm));
  }
  OK(MPI_Barrier(between));
  OK(MPI_Comm_free(&between));
  OK(MPI_Comm_free(&other));
  OK(MPI_Finalize());
  return 0;
}
