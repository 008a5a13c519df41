// No update is lost when many ranks accumulate at one location at the same time, by any call and in any
// kind of memory.
#include "machines_of_ranks.h"

enum { cells = 5 };

static int rank, size, rounds;

static void crowd(MPI_Win win, long* own, int target, MPI_Aint begin) {
  long one = 1, was = 0, most = -1;
  OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < rounds; ++i) {
    long ones[cells] = {1, 1, 1, 1, 1};
    OK(MPI_Accumulate(ones, cells, MPI_LONG, target, begin, cells, MPI_LONG, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&one, &was, MPI_LONG, target, begin + 5 * (MPI_Aint)sizeof one, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    CHECK(was > most); // each rank sees increasing numbers
    most = was;
    // An increment by compare-and-swap.
    long seen = 0, next = 0, found = 0;
    OK(MPI_Fetch_and_op(NULL, &seen, MPI_LONG, target, begin + 6 * (MPI_Aint)sizeof one, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    for (;;) {
      next = seen + 1;
      OK(MPI_Compare_and_swap(&next, &seen, &found, MPI_LONG, target, begin + 6 * (MPI_Aint)sizeof one, win));
      OK(MPI_Win_flush(target, win));
      if (found == seen) break;
      seen = found;
    }
  }
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == target)
    for (int i = 0; i < 7; ++i) CHECK(own[i] == (long)rounds * size);
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Increments by plain puts and gets under an exclusive lock.
static void in_turns(MPI_Win win, long* own) {
  for (int i = 0; i < 300; ++i) {
    long value = 0, again = 0;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Get(&value, 1, MPI_LONG, 0, 7 * (MPI_Aint)sizeof value, 1, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    ++value;
    OK(MPI_Put(&value, 1, MPI_LONG, 0, 7 * (MPI_Aint)sizeof value, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    // Reads under a shared lock of one rank or of all.
    if (i % 3 == 0)
      OK(MPI_Win_lock_all(0, win));
    else
      OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Get(&value, 1, MPI_LONG, 0, 7 * (MPI_Aint)sizeof value, 1, MPI_LONG, win));
    OK(MPI_Get(&again, 1, MPI_LONG, 0, 7 * (MPI_Aint)sizeof value, 1, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    CHECK(value == again);
    if (i % 3 == 0)
      OK(MPI_Win_unlock_all(win));
    else
      OK(MPI_Win_unlock(0, win));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) CHECK(own[7] == 300l * size);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  rounds = on_several_machines() ? 500 : 2000;
  MPI_Win win;
  long *in_segment = NULL, in_private[8] = {0};
  OK(MPI_Win_allocate(sizeof in_private, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &in_segment, &win));
  crowd(win, in_segment, size - 1, 0);
  in_turns(win, in_segment);
  OK(MPI_Win_free(&win));
  OK(MPI_Win_create(in_private, sizeof in_private, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  crowd(win, in_private, 0, 0);
  in_turns(win, in_private);
  OK(MPI_Win_free(&win));
  OK(MPI_Finalize());
  return 0;
}
