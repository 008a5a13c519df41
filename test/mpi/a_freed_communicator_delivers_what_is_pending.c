// A message arrives although the handles of its communicator and datatype are freed while it is under way.
#include "check.h"

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  enum { columns = 20000 };
  static int out[columns][2], in[columns][2];
  for (int i = 0; i < columns; ++i) {
    out[i][0] = rank + i;
    out[i][1] = -7;
    in[i][1] = -9;
  }
  for (int round = 0; round < 3; ++round) {
    MPI_Comm copy;
    MPI_Datatype column;
    MPI_Request requests[2];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Type_vector(columns, 1, 2, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Irecv(in, 1, column, left, 1, copy, &requests[0]));
    OK(MPI_Isend(out, 1, column, right, 1, copy, &requests[1]));
    OK(MPI_Type_free(&column));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < columns; ++i) CHECK(in[i][0] == left + i && in[i][1] == -9);
  }
  OK(MPI_Finalize());
  return 0;
}
