// Short operations on private memory are complete when a flush says so, in the order of the standard, whether the target waits
// in MPI, polls or computes: more of them at a time than a process hands over, mixed with longer ones and with gaps.
#include "check.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { longs = 4096, many = 100 };
static int rank, size;
static long part[longs], mine[longs], before[longs];

static void look(long first, long step, int count) {
  for (int i = 0; i < count; ++i) CHECK(mine[i] == first + step * i);
}

// Puts and gets of 1 to 2048 elements, more than fit at once, and one that is not handed over at all.
static void move(int target, MPI_Win win) {
  for (int length = 1; length <= 2048; length *= 2) {
    const int count = longs / length < many ? longs / length : many;
    for (int i = 0; i < count * length; ++i) before[i] = rank * 100000L + length + i;
    for (int i = 0; i < count; ++i) {
      memcpy(mine, before + i * length, (size_t)length * sizeof(long));
      OK(MPI_Put(mine, length, MPI_LONG, target, (MPI_Aint)i * length, length, MPI_LONG, win));
      OK(MPI_Win_flush_local(target, win)); // `mine` may be used again
    }
    OK(MPI_Win_flush(target, win));
    memset(mine, 0, sizeof mine);
    for (int i = 0; i < count; ++i)
      OK(MPI_Get(mine + i * length, length, MPI_LONG, target, (MPI_Aint)i * length, length, MPI_LONG, win));
    if (length % 2 == 0)
      OK(MPI_Win_flush(target, win));
    else
      OK(MPI_Win_flush_local(target, win));
    look(rank * 100000L + length, 1, count * length);
  }
}

// Accumulates on one element are done in the order of their calls, however they are done, and whether or not they have gaps.
static void keep_order(int target, MPI_Win win) {
  long values[many], result = 0;
  MPI_Datatype apart, vector;
  OK(MPI_Type_vector(2, 1, 3, MPI_LONG, &apart));
  OK(MPI_Type_commit(&apart));
  for (int i = 0; i < many; ++i) {
    values[i] = i;
    if (i % 7 == 3) {
      long two[2] = {i, i};
      OK(MPI_Accumulate(two, 2, MPI_LONG, target, 0, 1, apart, MPI_REPLACE, win));
    } else {
      OK(MPI_Accumulate(&values[i], 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_REPLACE, win));
    }
    if (i % 5 == 4) OK(MPI_Accumulate(&values[1], 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win));
  }
  OK(MPI_Fetch_and_op(NULL, &result, MPI_LONG, target, 0, MPI_NO_OP, win));
  OK(MPI_Win_flush(target, win));
  CHECK(result == many); // the last one replaced by many - 1 and added 1

  // Each fetch gets what the one before it has left; all of them come back with one flush.
  long zero = 0, one = 1;
  OK(MPI_Accumulate(&zero, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_REPLACE, win));
  for (int i = 0; i < many; ++i) OK(MPI_Fetch_and_op(&one, &before[i], MPI_LONG, target, 0, MPI_SUM, win));
  long swapped[3], hundred = many, two_hundred = 2 * many;
  OK(MPI_Compare_and_swap(&two_hundred, &one, &swapped[0], MPI_LONG, target, 0, win)); // not equal
  OK(MPI_Compare_and_swap(&two_hundred, &hundred, &swapped[1], MPI_LONG, target, 0, win));
  OK(MPI_Compare_and_swap(&zero, &two_hundred, &swapped[2], MPI_LONG, target, 0, win));
  OK(MPI_Win_flush(target, win));
  for (int i = 0; i < many; ++i) CHECK(before[i] == i);
  CHECK(swapped[0] == many && swapped[1] == many && swapped[2] == 2 * many);

  // Elements of every alignment, and a datatype that is freed before its data come.
  static double complex_part[4], complex_before[4];
  long double wide[2] = {1.5L, 2.5L}, wide_before[2];
  OK(MPI_Accumulate(wide, 2, MPI_LONG_DOUBLE, target, 16, 2, MPI_LONG_DOUBLE, MPI_REPLACE, win));
  OK(MPI_Get_accumulate(wide, 2, MPI_LONG_DOUBLE, wide_before, 2, MPI_LONG_DOUBLE, target, 16, 2,
                        MPI_LONG_DOUBLE, MPI_SUM, win));
  OK(MPI_Fetch_and_op(wide, wide, MPI_LONG_DOUBLE, target, 16, MPI_NO_OP, win));
  complex_part[0] = 1;
  OK(MPI_Get_accumulate(complex_part, 2, MPI_C_DOUBLE_COMPLEX, complex_before, 2, MPI_C_DOUBLE_COMPLEX,
                        target, 24, 2, MPI_C_DOUBLE_COMPLEX, MPI_REPLACE, win));
  OK(MPI_Type_vector(8, 1, 2, MPI_LONG, &vector));
  OK(MPI_Type_commit(&vector));
  memset(mine, 0xff, sizeof mine);
  OK(MPI_Get(mine, 1, vector, target, 0, 8, MPI_LONG, win));
  OK(MPI_Type_free(&vector));
  OK(MPI_Win_flush(target, win));
  CHECK(wide_before[0] == 1.5L && wide_before[1] == 2.5L && wide[0] == 3.0L);
  for (int i = 0; i < 16; ++i) CHECK(i % 2 == 0 || mine[i] == -1);
  CHECK(mine[0] == 0);
  OK(MPI_Type_free(&apart));
}

// Memory with gaps at the target: one run, several, and more of them than are handed over.
static void leave_gaps(int target, MPI_Win win) {
  enum { most = 100 };
  int lengths[most], places[most];
  MPI_Datatype kinds[3];
  OK(MPI_Type_vector(most, 1, 3, MPI_LONG, &kinds[0]));
  for (int i = 0; i < most; ++i) {
    lengths[i] = 1 + i % 3;
    places[i] = 7 * i + i % 5;
  }
  OK(MPI_Type_indexed(20, lengths, places, MPI_LONG, &kinds[1]));
  OK(MPI_Type_indexed(most, lengths, places, MPI_LONG, &kinds[2]));
  for (int kind = 0; kind < 3; ++kind) {
    MPI_Datatype there = kinds[kind];
    int bytes;
    OK(MPI_Type_commit(&there));
    OK(MPI_Type_size(there, &bytes));
    const int count = bytes / (int)sizeof(long);
    for (int i = 0; i < 1024; ++i) before[i] = -1;
    OK(MPI_Put(before, 1024, MPI_LONG, target, 0, 1024, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < count; ++i) before[i] = 1000 * kind + i;
    OK(MPI_Put(before, count, MPI_LONG, target, 0, 1, there, win));
    OK(MPI_Win_flush(target, win));
    // Adds i to each, twice, fetches what was there in between, and reads all of it with its gaps.
    for (int i = 0; i < count; ++i) before[i] = i;
    OK(MPI_Accumulate(before, count, MPI_LONG, target, 0, 1, there, MPI_SUM, win));
    memset(mine, 0, sizeof mine);
    OK(MPI_Get_accumulate(before, count, MPI_LONG, mine, count, MPI_LONG, target, 0, 1, there, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    look(1000L * kind, 2, count);
    memset(mine, 0, sizeof mine);
    OK(MPI_Get(mine, count, MPI_LONG, target, 0, 1, there, win));
    OK(MPI_Get(mine + 2048, 1024, MPI_LONG, target, 0, 1024, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    look(1000L * kind, 3, count);
    for (int i = 0, at = 0, place = 0; i < 1024; ++i) {
      // Whether element i is in the datatype: `at` counts those before it.
      while (kind != 0 && place < most && i >= places[place] + lengths[place]) ++place;
      const int is_in = at < count && (kind == 0 ? i % 3 == 0 : i >= places[place]);
      CHECK(mine[2048 + i] == (is_in ? 1000L * kind + 3 * at : -1));
      at += is_in;
    }
    // Nothing, and a replacement.
    memset(mine, 0, sizeof mine);
    OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, mine, count, MPI_LONG, target, 0, 1, there, MPI_NO_OP, win));
    OK(MPI_Get_accumulate(before, count, MPI_LONG, mine + 2048, count, MPI_LONG, target, 0, 1, there,
                          MPI_REPLACE, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, before + 2048, count, MPI_LONG, target, 0, 1, there, MPI_NO_OP,
                          win));
    OK(MPI_Win_flush(target, win));
    look(1000L * kind, 3, count);
    for (int i = 0; i < count; ++i) CHECK(mine[2048 + i] == mine[i] && before[2048 + i] == i);
    OK(MPI_Type_free(&there));
  }
}

// Requests are complete without a flush.
static void request(int target, MPI_Win win) {
  MPI_Request requests[4];
  long one = 1, got[2] = {-1, -1}, old = -1;
  OK(MPI_Rput(&one, 1, MPI_LONG, target, 64, 1, MPI_LONG, win, &requests[0]));
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  OK(MPI_Win_flush(target, win));
  OK(MPI_Raccumulate(&one, 1, MPI_LONG, target, 64, 1, MPI_LONG, MPI_SUM, win, &requests[0]));
  OK(MPI_Rget_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, target, 64, 1, MPI_LONG, MPI_SUM, win,
                         &requests[1]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(old == 2);
  OK(MPI_Win_flush(target, win));
  OK(MPI_Rget(got, 1, MPI_LONG, target, 64, 1, MPI_LONG, win, &requests[0]));
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  CHECK(got[0] == 3);
}

// All ranks add to all others between fences, and under locks.
static void all_at_once(MPI_Win win) {
  memset(part, 0, sizeof part);
  OK(MPI_Win_fence(0, win));
  const long one = 1;
  for (int to = 0; to < size; ++to)
    for (int i = 0; i < many; ++i)
      OK(MPI_Accumulate(&one, 1, MPI_LONG, to, i % 8, 1, MPI_LONG, MPI_SUM, win));
  for (int to = 0; to < size; ++to) {
    const long value = rank + 1;
    OK(MPI_Put(&value, 1, MPI_LONG, to, 100 + rank, 1, MPI_LONG, win));
  }
  OK(MPI_Win_fence(0, win));
  long sum = 0;
  for (int i = 0; i < 8; ++i) sum += part[i];
  CHECK(sum == (long)many * size);
  for (int i = 0; i < size; ++i) CHECK(part[100 + i] == i + 1);
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));

  OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < many; ++i)
    OK(MPI_Accumulate(&one, 1, MPI_LONG, (rank + i) % size, 0, 1, MPI_LONG, MPI_SUM, win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  long total = 0, own = 0;
  OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
  for (int i = 0; i < 8; ++i) own += part[i];
  OK(MPI_Win_unlock(rank, win));
  OK(MPI_Allreduce(&own, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
  CHECK(total == (long)many * size * size + (long)many * size);
}

// Memory that is not in the window is refused by the call, and nothing before it is lost.
static void refuse(int target, MPI_Win win) {
  const long value = 17;
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Put(&value, 1, MPI_LONG, target, 5, 1, MPI_LONG, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_LONG, target, longs, 1, MPI_LONG, win));
  OK(MPI_Win_flush(target, win));
  OK(MPI_Get(mine, 1, MPI_LONG, target, 5, 1, MPI_LONG, win));
  OK(MPI_Win_flush(target, win));
  CHECK(mine[0] == value);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  MPI_Win win;
  OK(MPI_Win_create(part, sizeof part, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  // Rank 0 is the target of each other rank in turn: it waits in MPI, polls, or computes until they are done.
  for (int way = 0; way < 3; ++way)
    for (int origin = 1; origin < size; ++origin) {
      const int done = 7;
      if (rank == origin) {
        OK(MPI_Win_lock(way == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win));
        move(0, win);
        keep_order(0, win);
        leave_gaps(0, win);
        request(0, win);
        refuse(0, win);
        OK(MPI_Win_unlock(0, win));
        OK(MPI_Send(NULL, 0, MPI_INT, 0, done, MPI_COMM_WORLD));
      } else if (rank == 0) {
        int arrived = way == 0;
        while (!arrived) {
          if (way == 2) usleep(2000);
          OK(MPI_Iprobe(origin, done, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE));
        }
        OK(MPI_Recv(NULL, 0, MPI_INT, origin, done, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      OK(MPI_Barrier(MPI_COMM_WORLD));
    }
  for (int i = 0; i < 5; ++i) all_at_once(win);
  OK(MPI_Win_free(&win));
  OK(MPI_Finalize());
  return 0;
}
