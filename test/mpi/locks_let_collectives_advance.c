// A rank that waits for the lock of a window advances the nonblocking collectives that it has started: the
// holder of the lock waits for one of them before it releases the lock.
#include "check.h"

#include <unistd.h>

enum { long_count = 400000 };

/// `calls` nonblocking calls are under way when rank 0 requests the lock that rank 1 holds.
static void wait_for_the_lock(int rank, MPI_Win window, int calls, int count) {
  int* own = malloc((size_t)count * sizeof *own);
  int* sums[2] = {malloc((size_t)count * sizeof(int)), malloc((size_t)count * sizeof(int))};
  MPI_Request requests[2];
  CHECK(own != NULL && sums[0] != NULL && sums[1] != NULL);
  for (int i = 0; i < count; ++i) own[i] = i;
  if (rank == 1) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
    OK(MPI_Win_flush(0, window));
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD));
    usleep(20000); // meanwhile rank 0 starts to wait for the lock
  } else {
    OK(MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  for (int i = 0; i < calls; ++i)
    OK(MPI_Iallreduce(own, sums[i], count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]));
  if (rank == 1)
    OK(MPI_Wait(&requests[calls - 1], MPI_STATUS_IGNORE));
  else
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
  OK(MPI_Win_unlock(0, window));
  OK(MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < calls; ++i) CHECK(sums[i][count - 1] == 2 * (count - 1));
  free(own);
  for (int i = 0; i < 2; ++i) free(sums[i]);
}

int main(int argc, char** argv) {
  int rank, *base;
  MPI_Win window;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window));
  wait_for_the_lock(rank, window, 1, long_count);
  OK(MPI_Barrier(MPI_COMM_WORLD)); // else rank 1 may lock the window again before rank 0 has had the lock
  wait_for_the_lock(rank, window, 2, 1);
  OK(MPI_Win_free(&window));
  OK(MPI_Finalize());
  return 0;
}
