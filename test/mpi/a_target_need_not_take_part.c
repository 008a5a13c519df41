// While the target computes or sleeps outside MPI, others lock its part of the window, put, get and
// accumulate. A process that waits for the lock sleeps meanwhile.
#include "check.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  atomic_int* flag = NULL; // 0: go on; 1: number of ranks that are done
  int private[2] = {0, 0}, one = 1, value = 0;
  MPI_Win shared, created;
  OK(MPI_Win_allocate(2 * (MPI_Aint)sizeof *flag, sizeof *flag, MPI_INFO_NULL, MPI_COMM_WORLD, &flag,
                      &shared));
  OK(MPI_Win_create(private, sizeof private, sizeof *private, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
  OK(MPI_Win_lock_all(0, shared));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    // Does not call MPI until all others are done.
    while (atomic_load(&flag[1]) != size - 1) usleep(1000);
  } else {
    for (int i = 0; i < 100; ++i) {
      OK(MPI_Win_lock(i % 2 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, created));
      OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, created));
      OK(MPI_Fetch_and_op(NULL, &value, MPI_INT, 0, 1, MPI_NO_OP, created));
      OK(MPI_Win_unlock(0, created));
      CHECK(value > i);
    }
    OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, shared));
  }
  OK(MPI_Win_unlock_all(shared));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) CHECK(private[1] == 100 * (size - 1));

  // Rank 0 holds the lock for a while; the others wait and get it one after the other.
  if (rank == 0) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, shared));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    usleep(300000);
    OK(MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, shared));
    OK(MPI_Win_unlock(0, shared));
  } else {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    OK(MPI_Win_lock(rank % 2 == 1 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, shared));
    getrusage(RUSAGE_SELF, &after);
    // A waiting rank wakes up at least every 10 ms; one that spins or yields never sleeps.
    CHECK(after.ru_nvcsw - before.ru_nvcsw >= 5);
    OK(MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, shared));
    OK(MPI_Win_unlock(0, shared));
    CHECK(value == 1);
  }
  OK(MPI_Win_free(&created));
  OK(MPI_Win_free(&shared));
  OK(MPI_Finalize());
  return 0;
}
