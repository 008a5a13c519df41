// Wrong arguments of collectives raise the standard's classes, at the ranks where the arguments count.
#include "check.h"

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size, a[64] = {0}, b[64];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)); // for calls that name no communicator

  FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, size, MPI_COMM_WORLD));
  FAILS(MPI_ERR_ROOT, MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, -1, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COUNT, MPI_Bcast(a, -1, MPI_INT, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_TYPE, MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
  FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));

  // One buffer for both sides without MPI_IN_PLACE.
  FAILS(MPI_ERR_BUFFER, MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Scan(a, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Allgather(a, 1, MPI_INT, a, 1, MPI_INT, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Allgather(a + rank, 1, MPI_INT, a, 1, MPI_INT, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Alltoall(a, 1, MPI_INT, a, 1, MPI_INT, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD));

  // What only the root looks at may be anything elsewhere.
  OK(MPI_Gather(a, 1, MPI_INT, rank == 0 ? b : NULL, rank == 0 ? 1 : -5,
                rank == 0 ? MPI_INT : MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
  // The communicator works as before.
  int sum = 0, one = 1;
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size);
  OK(MPI_Finalize());
  return 0;
}
