// A receive without a message and a send without a receive are cancelled; matched ones complete as usual.
#include "check.h"

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size, flag;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  static char large[300000];
  MPI_Request request;
  MPI_Status status;

  OK(MPI_Irecv(large, sizeof large, MPI_CHAR, left, 1, MPI_COMM_WORLD, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_Test_cancelled(&status, &flag));
  CHECK(flag && request == MPI_REQUEST_NULL);

  OK(MPI_Issend(large, sizeof large, MPI_CHAR, right, 2, MPI_COMM_WORLD, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_Test_cancelled(&status, &flag));
  CHECK(flag);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Iprobe(left, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);

  // The receive that a cancelled message would have matched takes the next message.
  int out = rank, in = -1;
  OK(MPI_Irecv(&in, 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
  OK(MPI_Ssend(&out, 1, MPI_INT, right, 3, MPI_COMM_WORLD));
  OK(MPI_Wait(&request, &status));
  OK(MPI_Test_cancelled(&status, &flag));
  CHECK(!flag && in == left && status.MPI_TAG == 3);

  // A message that has been received can no longer be cancelled.
  OK(MPI_Isend(&out, 1, MPI_INT, right, 4, MPI_COMM_WORLD, &request));
  OK(MPI_Recv(&in, 1, MPI_INT, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_Test_cancelled(&status, &flag));
  CHECK(!flag);
  OK(MPI_Finalize());
  return 0;
}
