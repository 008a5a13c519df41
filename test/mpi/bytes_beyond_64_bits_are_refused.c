// If the size of a count's elements in bytes exceeds 64 bits, the call fails with an error that names the
// count and the size of the type. Otherwise the product could be a small number, and the call would succeed.
#include "check.h"

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int size, one[1] = {0}, other[1];
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size <= 8);
  const MPI_Count many = ((MPI_Count)1 << 61) + 1; // of 8 bytes each: the lower 64 bits of the product are 8
  MPI_Request request = MPI_REQUEST_NULL;

  FAILS(MPI_ERR_COUNT, MPI_Isend_c(one, many, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request));
  CHECK(request == MPI_REQUEST_NULL);
  FAILS(MPI_ERR_COUNT, MPI_Recv_c(one, many, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_COUNT, MPI_Send_init_c(one, many, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request));
  FAILS(MPI_ERR_COUNT, MPI_Allreduce_c(one, other, many, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COUNT, MPI_Bcast_c(one, many, MPI_DOUBLE, 0, MPI_COMM_WORLD));
  // Each partition fits, but their sum does not.
  FAILS(MPI_ERR_COUNT, MPI_Psend_init(one, 1 << 30, (MPI_Count)1 << 31, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD,
                                      MPI_INFO_NULL, &request));

  // The int forms need a large type for this. Its memory is never touched.
  MPI_Datatype row, plane;
  OK(MPI_Type_contiguous(1 << 20, MPI_DOUBLE, &row));
  OK(MPI_Type_contiguous(1 << 20, row, &plane));
  OK(MPI_Type_commit(&plane));
  FAILS(MPI_ERR_COUNT, MPI_Send(one, 1 << 21, plane, 0, 0, MPI_COMM_WORLD));

  // Arrays of counts: first one element is too large, then only the sum.
  int counts[8] = {0}, displacements[8] = {0};
  MPI_Datatype types[8];
  for (int i = 0; i < 8; ++i) types[i] = plane;
  counts[size - 1] = 1 << 21;
  FAILS(MPI_ERR_COUNT, MPI_Allgatherv(one, 0, MPI_INT, one, counts, displacements, plane, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COUNT,
        MPI_Alltoallv(one, counts, displacements, plane, one, counts, displacements, plane, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COUNT,
        MPI_Alltoallw(one, counts, displacements, types, one, counts, displacements, types, MPI_COMM_WORLD));
  if (size > 1) {
    for (int i = 0; i < size; ++i) counts[i] = (1 << 20) / size + 1; // times 2^43 bytes
    FAILS(MPI_ERR_COUNT, MPI_Allgatherv(one, 0, MPI_INT, one, counts, displacements, plane, MPI_COMM_WORLD));
    // A block for each process: each fits, but their sum does not.
    const MPI_Count block = ((MPI_Count)1 << 60) / size + 1;
    FAILS(MPI_ERR_COUNT, MPI_Allgather_c(one, 0, MPI_INT, one, block, MPI_DOUBLE, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COUNT, MPI_Alltoall_c(one, block, MPI_DOUBLE, one, block, MPI_DOUBLE, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter_block_c(one, other, block, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  }

  // The largest count that fits is not an error; it goes to MPI_PROC_NULL, so no memory is touched.
  OK(MPI_Isend_c(one, many - 2, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Type_free(&plane));
  OK(MPI_Type_free(&row));
  OK(MPI_Finalize());
  return 0;
}
