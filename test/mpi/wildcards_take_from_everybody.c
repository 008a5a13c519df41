// Rank 0 receives from any source and with any tag; every message arrives exactly once, those of each sender
// in order.
#include "check.h"

enum { each = 200 };

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  if (rank == 0) {
    int next[64] = {0};
    for (int i = 0; i < each * (size - 1); ++i) {
      int value[2];
      MPI_Status status;
      OK(MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
      CHECK(value[0] == status.MPI_SOURCE && value[1] == next[status.MPI_SOURCE]++);
      CHECK(status.MPI_TAG == value[1] % 5);
    }
    for (int i = 1; i < size; ++i) OK(MPI_Send(NULL, 0, MPI_INT, i, 0, MPI_COMM_WORLD));
    // By tag from any source: messages with other tags wait.
    for (int tag = 2; tag >= 0; --tag)
      for (int i = 1; i < size; ++i) {
        int value = -1;
        MPI_Status status;
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status));
        CHECK(value == status.MPI_SOURCE * 10 + tag && status.MPI_TAG == tag);
      }
  } else {
    for (int i = 0; i < each; ++i) {
      int value[2] = {rank, i};
      OK(MPI_Send(value, 2, MPI_INT, 0, i % 5, MPI_COMM_WORLD));
    }
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int tag = 0; tag < 3; ++tag) {
      int value = rank * 10 + tag;
      OK(MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD));
    }
  }
  OK(MPI_Finalize());
  return 0;
}
