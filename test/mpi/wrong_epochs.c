// Calls that do not fit the epochs of a window, or its memory, raise an error of the right class and change
// nothing.
#include "check.h"

#include <string.h>

int main(int argc, char** argv) {
  int rank, size, *base = NULL, one = 1, other = 0;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  MPI_Win win;
  OK(MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  MPI_Group group, none;
  OK(MPI_Win_get_group(win, &group));
  OK(MPI_Group_excl(group, 1, &rank, &none)); // all other ranks

  // Outside any epoch.
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Get(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Compare_and_swap(&one, &one, &other, MPI_INT, 0, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &other));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
  OK(MPI_Win_sync(win));

  // In an epoch of another kind.
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_start(group, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  MPI_Win same = win;
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&same));
  CHECK(same == win);
  if (size > 1) {
    FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(1, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win)); // several locks at a time
    OK(MPI_Put(&rank, 0, MPI_INT, 1, 0, 0, MPI_INT, win));
    OK(MPI_Win_unlock(1, win));
  }
  OK(MPI_Win_unlock(0, win));
  OK(MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
  OK(MPI_Win_flush(0, win));
  OK(MPI_Win_flush_local(0, win));
  OK(MPI_Win_flush_all(win));
  OK(MPI_Win_flush_local_all(win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win)); // no call has used the epoch of the fence
  OK(MPI_Win_unlock(rank, win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
  OK(MPI_Win_post(none, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_post(none, 0, win));
  OK(MPI_Win_start(none, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_start(none, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
  OK(MPI_Win_complete(win));
  OK(MPI_Win_wait(win));

  // Accesses outside the window's memory, and invalid arguments.
  OK(MPI_Win_fence(0, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&one, 1, MPI_INT, 0, 4, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Get(base, 4, MPI_INT, 0, 1, 4, MPI_INT, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&one, 1, MPI_INT, 0, ((MPI_Aint)1 << 62) - 1, 1, MPI_INT, win));
  FAILS(MPI_ERR_DISP, MPI_Put(&one, 1, MPI_INT, 0, -1, 1, MPI_INT, win));
  FAILS(MPI_ERR_RANK, MPI_Put(&one, 1, MPI_INT, size, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_COUNT, MPI_Put(&one, 1, MPI_INT, 0, 0, 2, MPI_INT, win));
  FAILS(MPI_ERR_OP, MPI_Accumulate(&one, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BXOR, win));
  FAILS(MPI_ERR_OP, MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win));
  FAILS(MPI_ERR_TYPE, MPI_Accumulate(&one, 1, MPI_FLOAT, 0, 0, 1, MPI_INT, MPI_SUM, win));
  FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&one, &one, &other, MPI_FLOAT, 0, 0, win));
  FAILS(MPI_ERR_BUFFER, MPI_Fetch_and_op(&one, NULL, MPI_INT, 0, 0, MPI_SUM, win));
  FAILS(MPI_ERR_BUFFER, MPI_Fetch_and_op(NULL, &one, MPI_INT, 0, 0, MPI_SUM, win));
  MPI_Datatype mixed;
  OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_INT, MPI_FLOAT},
                            &mixed));
  OK(MPI_Type_commit(&mixed));
  FAILS(MPI_ERR_TYPE, MPI_Accumulate(base, 1, mixed, 0, 0, 1, mixed, MPI_SUM, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  int untouched[2] = {5, 6};
  OK(MPI_Win_fence(0, win));
  if (rank == 0) OK(MPI_Accumulate(untouched, 1, mixed, 0, 1, 1, mixed, MPI_REPLACE, win)); // any type
  OK(MPI_Win_fence(0, win));
  if (rank == 0) CHECK(base[1] == 5 && base[2] == 6);
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(base[0] == 1 && base[3] == 0);
  FAILS(MPI_ERR_ASSERT, MPI_Win_fence(1 << 30, win));
  FAILS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOSTORE, win));
  FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(12345, 0, 0, win));
  FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
  FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, base, 4));
  FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(win, base));
  OK(MPI_Win_free(&win));

  // Memory of a dynamic window.
  static char memory[1000];
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  MPI_Aint begin = 0;
  OK(MPI_Get_address(memory, &begin));
  FAILS(MPI_ERR_SIZE, MPI_Win_attach(win, memory, -1));
  FAILS(MPI_ERR_BASE, MPI_Win_attach(win, NULL, 1));
  OK(MPI_Win_attach(win, NULL, 0));
  OK(MPI_Win_attach(win, memory + 100, 100));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, memory + 150, 100));
  OK(MPI_Win_attach(win, memory + 200, 100));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
  OK(MPI_Put(&one, 1, MPI_BYTE, rank, MPI_Aint_add(begin, 299), 1, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&one, 1, MPI_BYTE, rank, MPI_Aint_add(begin, 300), 1, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&one, 1, MPI_INT, rank, MPI_Aint_add(begin, 298), 1, MPI_INT, win));
  OK(MPI_Put(&one, 1, MPI_INT, rank, MPI_Aint_add(begin, 198), 1, MPI_INT, win)); // in two adjacent pieces
  OK(MPI_Win_detach(win, memory + 200));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&one, 1, MPI_BYTE, rank, MPI_Aint_add(begin, 299), 1, MPI_BYTE, win));
  OK(MPI_Win_unlock(rank, win));
  static char many[1000]; // there is no limit to the number of pieces
  for (int i = 0; i < 1000; ++i) OK(MPI_Win_attach(win, many + i, 1));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, many + 500, 1));
  OK(MPI_Win_free(&win));

  OK(MPI_Type_free(&mixed));
  OK(MPI_Group_free(&group));
  if (none != MPI_GROUP_EMPTY) OK(MPI_Group_free(&none));
  OK(MPI_Finalize());
  return 0;
}
