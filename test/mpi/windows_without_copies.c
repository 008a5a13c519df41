// One rank may not copy from or to the others. Windows of private memory are refused on every rank; those of
// shared memory work.
//   windows_without_copies read | write      what the last rank may not do
#include "check.h"
#include "deny.h"

#include <string.h>

int main(int argc, char** argv) {
  int rank, size, private = 0, *shared = NULL, one = 1;
  MPI_Win win;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size > 1 && argc > 1);
  if (rank == size - 1) deny(strcmp(argv[1], "read") == 0 ? SYS_process_vm_readv : SYS_process_vm_writev);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
        MPI_Win_create(&private, sizeof private, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win)); // exposes no private memory
  OK(MPI_Win_free(&win));
  OK(MPI_Win_allocate(sizeof *shared, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Accumulate(&one, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, MPI_SUM, win));
  OK(MPI_Win_fence(0, win));
  CHECK(*shared == 1);
  OK(MPI_Win_free(&win));
  printf("rank %d: refused\n", rank);
  OK(MPI_Finalize());
  return 0;
}
