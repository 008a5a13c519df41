// Wrong arguments of collectives raise the error classes of the standard, at the ranks where they are
// significant.
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

  // The forms with counts: a send block begins where a receive block does, on ranks that have such blocks.
  int ones[64], steps[64], bytes[64];
  MPI_Datatype types[64];
  for (int i = 0; i < 64; ++i) {
    ones[i] = 1;
    steps[i] = i;
    bytes[i] = 4 * i;
    types[i] = MPI_INT;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(a, ones, steps, MPI_INT, a, ones, steps, MPI_INT, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Alltoallw(a, ones, bytes, types, a, ones, bytes, types, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER,
        MPI_Ialltoallw(a, ones, bytes, types, a, ones, bytes, types, MPI_COMM_WORLD, &request));
  FAILS(MPI_ERR_BUFFER, MPI_Alltoallw_init(a, ones, bytes, types, a, ones, bytes, types, MPI_COMM_WORLD,
                                           MPI_INFO_NULL, &request));
  FAILS(MPI_ERR_BUFFER, MPI_Allgatherv(a + size - 1, 1, MPI_INT, a, ones, steps, MPI_INT, MPI_COMM_WORLD));
  if (rank == 0) { // an error at the root only: the others do not call
    FAILS(MPI_ERR_BUFFER, MPI_Gatherv(a + size - 1, 1, MPI_INT, a, ones, steps, MPI_INT, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Scatterv(a, ones, steps, MPI_INT, a + size - 1, 1, MPI_INT, 0, MPI_COMM_WORLD));
  }
  CHECK(request == MPI_REQUEST_NULL);
  // Empty blocks may lie anywhere.
  int none[64] = {0};
  OK(MPI_Alltoallw(a, none, bytes, types, a, none, bytes, types, MPI_COMM_WORLD));

  // Arguments that are significant only at the root may be invalid elsewhere.
  OK(MPI_Gather(a, 1, MPI_INT, rank == 0 ? b : NULL, rank == 0 ? 1 : -5,
                rank == 0 ? MPI_INT : MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
  // The communicator works as before.
  int sum = 0, one = 1;
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size);
  OK(MPI_Finalize());
  return 0;
}
