// A synchronous send, even of an empty message, does not complete before its receive has been posted.
#include "check.h"

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  static char data[100000];
  static const int sizes[] = {0, 8, 3000, 100000};
  for (int s = 0; s < 4; ++s) {
    if (rank == 1) {
      MPI_Request request;
      int flag = 1;
      OK(MPI_Issend(data, sizes[s], MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request));
      for (int i = 0; i < 1000; ++i) {
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag); // rank 0 receives only after the next message
      }
      OK(MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (rank == 0) {
      OK(MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      OK(MPI_Recv(data, sizes[s], MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
  OK(MPI_Finalize());
  return 0;
}
