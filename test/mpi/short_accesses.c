// One-sided calls with a few elements of one predefined type: data at each length and at the end of the target's memory, and errors
// after calls of the same kind that succeeded.
#include "check.h"

#include <limits.h>
#include <string.h>

enum { bytes_of_part = 20000 };

static int rank, size, right;
static MPI_Win win;
static unsigned char* part;

/// Puts and gets `count` bytes at the end of the right neighbour's part, and one byte behind it in vain.
static void move(int count) {
  unsigned char sent[bytes_of_part], got[bytes_of_part + 2];
  for (int i = 0; i < count; ++i) sent[i] = (unsigned char)(count + i * 7 + rank);
  memset(got, 170, sizeof got);
  const MPI_Aint at = bytes_of_part - count;
  OK(MPI_Put(sent, count, MPI_BYTE, right, at, count, MPI_BYTE, win));
  OK(MPI_Win_flush(right, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(sent, count, MPI_BYTE, right, at + 1, count, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Get(got, count, MPI_BYTE, right, at + 1, count, MPI_BYTE, win));
  FAILS(MPI_ERR_DISP, MPI_Put(sent, count, MPI_BYTE, right, -1, count, MPI_BYTE, win));
  OK(MPI_Get(got + 1, count, MPI_BYTE, right, at, count, MPI_BYTE, win));
  OK(MPI_Win_flush_local(right, win));
  CHECK(memcmp(got + 1, sent, (size_t)count) == 0);
  CHECK(got[0] == 170);
  CHECK(got[count + 1] == 170);
}

static void check_moves(void) {
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
  for (int count = 1; count <= 130; ++count) move(count);
  for (int count = 8190; count <= 8194; ++count) move(count);
  OK(MPI_Win_unlock(right, win));
}

/// A call whose result, or effect on other kinds of calls, is there after a flush.
#define COMPLETE(call)                                                                                       \
  do {                                                                                                       \
    OK(call);                                                                                                \
    OK(MPI_Win_flush(right, win));                                                                           \
  } while (0)

/// Each value follows from the one before it.
#define CHECK_ARITHMETIC(type, datatype)                                                                     \
  do {                                                                                                       \
    type value[3] = {5, 6, 7}, old = 0, three = 3, ten = 10;                                                 \
    COMPLETE(MPI_Put(value, 3, datatype, right, 64, 3, datatype, win));                                      \
    OK(MPI_Accumulate(value, 3, datatype, right, 64, 3, datatype, MPI_SUM, win));                            \
    OK(MPI_Accumulate(value, 3, datatype, right, 64, 3, datatype, MPI_SUM, win));                            \
    COMPLETE(MPI_Fetch_and_op(&three, &old, datatype, right, 64 + sizeof(type), MPI_PROD, win));             \
    CHECK(old == 18);                                                                                        \
    COMPLETE(MPI_Fetch_and_op(&three, &old, datatype, right, 64 + sizeof(type), MPI_PROD, win));             \
    CHECK(old == 54);                                                                                        \
    COMPLETE(MPI_Fetch_and_op(NULL, &old, datatype, right, 64 + sizeof(type), MPI_NO_OP, win));              \
    CHECK(old == (type)162);                                                                                 \
    COMPLETE(MPI_Fetch_and_op(&ten, &old, datatype, right, 64 + sizeof(type), MPI_NO_OP, win));              \
    CHECK(old == (type)162);                                                                                 \
    FAILS(MPI_ERR_OP, MPI_Accumulate(&ten, 1, datatype, right, 64, 1, datatype, MPI_NO_OP, win));            \
    COMPLETE(MPI_Fetch_and_op(&ten, &old, datatype, right, 64 + sizeof(type), MPI_REPLACE, win));            \
    CHECK(old == (type)162);                                                                                 \
    OK(MPI_Accumulate(&three, 1, datatype, right, 64 + sizeof(type), 1, datatype, MPI_REPLACE, win));        \
    OK(MPI_Accumulate(&ten, 1, datatype, right, 64 + sizeof(type), 1, datatype, MPI_MAX, win));              \
    COMPLETE(MPI_Accumulate(&three, 1, datatype, right, 64 + sizeof(type), 1, datatype, MPI_MAX, win));      \
    COMPLETE(MPI_Get(value, 3, datatype, right, 64, 3, datatype, win));                                      \
    CHECK(value[0] == 15 && value[1] == 10 && value[2] == 21);                                               \
    type before[3] = {0};                                                                                    \
    for (int i = 0; i < 2; ++i)                                                                              \
      COMPLETE(MPI_Get_accumulate(value, 2, datatype, before, 2, datatype, right, 64, 2, datatype, MPI_SUM,  \
                                  win));                                                                     \
    CHECK(before[0] == 30 && before[1] == 20 && before[2] == 0);                                             \
    OK(MPI_Win_flush_all(win));                                                                              \
    COMPLETE(                                                                                                \
        MPI_Get_accumulate(NULL, 0, datatype, before, 3, datatype, right, 64, 3, datatype, MPI_NO_OP, win)); \
    OK(MPI_Win_flush_local_all(win));                                                                        \
    CHECK(before[0] == 45 && before[1] == 30 && before[2] == 21);                                            \
    FAILS(MPI_ERR_COUNT, MPI_Get_accumulate(value, 2, datatype, before, 3, datatype, right, 64, 2, datatype, \
                                            MPI_SUM, win));                                                  \
  } while (0)

static void check_accumulates(void) {
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
  for (int round = 0; round < 2; ++round) {
    CHECK_ARITHMETIC(long, MPI_LONG);
    CHECK_ARITHMETIC(int, MPI_INT);
    CHECK_ARITHMETIC(short, MPI_SHORT);
    CHECK_ARITHMETIC(unsigned char, MPI_UNSIGNED_CHAR);
    CHECK_ARITHMETIC(double, MPI_DOUBLE);
    CHECK_ARITHMETIC(float, MPI_FLOAT);
  }
  // What has just succeeded with another operation, datatype, count or place.
  const double one = 1;
  double old[2];
  OK(MPI_Accumulate(&one, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, MPI_SUM, win));
  COMPLETE(MPI_Fetch_and_op(&one, old, MPI_DOUBLE, right, 0, MPI_SUM, win));
  FAILS(MPI_ERR_OP, MPI_Accumulate(&one, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, MPI_BAND, win));
  FAILS(MPI_ERR_OP, MPI_Fetch_and_op(&one, old, MPI_DOUBLE, right, 0, MPI_BAND, win));
  FAILS(MPI_ERR_TYPE, MPI_Accumulate(&one, 2, MPI_INT, right, 0, 1, MPI_DOUBLE, MPI_SUM, win));
  FAILS(MPI_ERR_COUNT, MPI_Accumulate(&one, 1, MPI_DOUBLE, right, 0, 2, MPI_DOUBLE, MPI_SUM, win));
  FAILS(MPI_ERR_BUFFER, MPI_Fetch_and_op(NULL, old, MPI_DOUBLE, right, 0, MPI_SUM, win));
  FAILS(MPI_ERR_BUFFER, MPI_Fetch_and_op(&one, NULL, MPI_DOUBLE, right, 0, MPI_SUM, win));
  const int last = bytes_of_part - 7;
  FAILS(MPI_ERR_RMA_RANGE, MPI_Accumulate(&one, 1, MPI_DOUBLE, right, last, 1, MPI_DOUBLE, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Fetch_and_op(&one, old, MPI_DOUBLE, right, last, MPI_SUM, win));
  FAILS(MPI_ERR_RANK, MPI_Accumulate(&one, 1, MPI_DOUBLE, size, 0, 1, MPI_DOUBLE, MPI_SUM, win));
  FAILS(MPI_ERR_RANK, MPI_Accumulate(&one, 1, MPI_DOUBLE, -20, 0, 1, MPI_DOUBLE, MPI_SUM, win));
  OK(MPI_Accumulate(&one, 0, MPI_DOUBLE, right, last, 0, MPI_DOUBLE, MPI_SUM, win));
  OK(MPI_Accumulate(&one, 1, MPI_DOUBLE, MPI_PROC_NULL, last, 1, MPI_DOUBLE, MPI_SUM, win));
  OK(MPI_Win_unlock(right, win));
  // Without an epoch.
  FAILS(MPI_ERR_RMA_SYNC, MPI_Accumulate(&one, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Get(old, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(right, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(right, win));
}

#define CHECK_SWAP(type, datatype)                                                                           \
  do {                                                                                                       \
    type first = 40, second = 41, third = 42, old = 0;                                                       \
    COMPLETE(MPI_Put(&first, 1, datatype, right, 128, 1, datatype, win));                                    \
    for (int i = 0; i < 2; ++i) {                                                                            \
      COMPLETE(MPI_Compare_and_swap(&third, &second, &old, datatype, right, 128, win));                      \
      CHECK(old == first);                                                                                   \
    }                                                                                                        \
    COMPLETE(MPI_Compare_and_swap(&second, &first, &old, datatype, right, 128, win));                        \
    CHECK(old == first);                                                                                     \
    COMPLETE(MPI_Compare_and_swap(&third, &second, &old, datatype, right, 128, win));                        \
    CHECK(old == second);                                                                                    \
    COMPLETE(MPI_Get(&old, 1, datatype, right, 128, 1, datatype, win));                                      \
    CHECK(old == third);                                                                                     \
    FAILS(MPI_ERR_RMA_RANGE,                                                                                 \
          MPI_Compare_and_swap(&third, &second, &old, datatype, right, bytes_of_part, win));                 \
    FAILS(MPI_ERR_BUFFER, MPI_Compare_and_swap(&third, NULL, &old, datatype, right, 128, win));              \
  } while (0)

static void check_swaps(void) {
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win));
  for (int round = 0; round < 2; ++round) {
    CHECK_SWAP(long, MPI_LONG);
    CHECK_SWAP(int, MPI_INT);
    CHECK_SWAP(short, MPI_SHORT);
    CHECK_SWAP(signed char, MPI_SIGNED_CHAR);
  }
  double one = 1, old;
  FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&one, &one, &old, MPI_DOUBLE, right, 128, win));
  OK(MPI_Win_unlock(right, win));
}

static void check_locks(void) {
  long one = 1, sum = 0;
  // The epoch of a fence ends with a lock unless it was used.
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
  OK(MPI_Win_unlock(right, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_LONG, right, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(0, right, 0, win));
  FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
  FAILS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, right, 1 << 20, win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&one, 1, MPI_LONG, right, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  // All ranks change one word of rank 0, one at a time.
  for (int i = 0; i < 200; ++i) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Get(&sum, 1, MPI_LONG, 0, 256, 1, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    sum += 1;
    OK(MPI_Put(&sum, 1, MPI_LONG, 0, 256, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  OK(MPI_Get(&sum, 1, MPI_LONG, 0, 256, 1, MPI_LONG, win));
  OK(MPI_Win_unlock(0, win));
  CHECK(sum == 200 * size);
}

/// Displacements in units of 8 bytes, and one more than there are.
static void check_units(void) {
  long *cells, value = 5 + rank, got = 0, size_of_part = rank == 1 ? 0 : 3;
  MPI_Win units;
  OK(MPI_Win_allocate(size_of_part * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &units));
  OK(MPI_Win_set_errhandler(units, MPI_ERRORS_RETURN));
  OK(MPI_Win_lock_all(0, units));
  const long there = right == 1 ? 0 : 3;
  if (there > 0) {
    OK(MPI_Put(&value, 1, MPI_LONG, right, there - 1, 1, MPI_LONG, units));
    OK(MPI_Win_flush(right, units));
    OK(MPI_Get(&got, 1, MPI_LONG, right, there - 1, 1, MPI_LONG, units));
    OK(MPI_Win_flush_local(right, units));
    CHECK(got == value);
  }
  const MPI_Aint wrong[] = {there, there + 1, 1L << 60, 1L << 61, (1L << 61) + 1, LONG_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_LONG, right, wrong[i], 1, MPI_LONG, units));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Fetch_and_op(&value, &got, MPI_LONG, right, wrong[i], MPI_SUM, units));
  }
  FAILS(MPI_ERR_DISP, MPI_Get(&got, 1, MPI_LONG, right, -(1L << 61), 1, MPI_LONG, units));
  OK(MPI_Win_unlock_all(units));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (there > 0) CHECK(got == value);
  OK(MPI_Win_free(&units));
}

enum flavour { allocated, shared, of_alloc_mem, private, flavours };

static void check_window(enum flavour flavour) {
  part = NULL;
  if (flavour == allocated)
    OK(MPI_Win_allocate(bytes_of_part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win));
  else if (flavour == shared)
    OK(MPI_Win_allocate_shared(bytes_of_part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win));
  else {
    // The even ranks' parts may be of another kind than the odd ones'.
    if (flavour == of_alloc_mem || rank % 2 == 0)
      OK(MPI_Alloc_mem(bytes_of_part, MPI_INFO_NULL, &part));
    else
      part = malloc(bytes_of_part);
    OK(MPI_Win_create(part, bytes_of_part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  }
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  memset(part, 0, bytes_of_part);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  check_moves();
  OK(MPI_Barrier(MPI_COMM_WORLD));
  check_accumulates();
  OK(MPI_Barrier(MPI_COMM_WORLD));
  check_swaps();
  OK(MPI_Barrier(MPI_COMM_WORLD));
  memset(part, 0, bytes_of_part);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  check_locks();
  const MPI_Win stale = win;
  OK(MPI_Win_free(&win));
  FAILS(MPI_ERR_WIN, MPI_Put(&rank, 1, MPI_INT, right, 0, 1, MPI_INT, stale));
  if (flavour == of_alloc_mem || (flavour == private && rank % 2 == 0))
    OK(MPI_Free_mem(part));
  else if (flavour == private)
    free(part);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  right = (rank + 1) % size;
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int is_on_one_machine = 0;
  MPI_Comm near;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
  OK(MPI_Comm_size(near, &is_on_one_machine));
  is_on_one_machine = is_on_one_machine == size;
  OK(MPI_Comm_free(&near));
  for (enum flavour flavour = 0; flavour < flavours; ++flavour)
    if (flavour != shared || is_on_one_machine) check_window(flavour);
  check_units();
  MPI_Finalize();
  return 0;
}
