// Threads of one process lock, put, get and accumulate at the same time: first each on a window of its own,
// then all on one window. With the argument `private`, the windows are of memory of malloc.
#include "check.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { threads = 4, rounds = 200 };

static int rank, size, is_private;

static MPI_Win window_of(int count, long** base) {
  MPI_Win made;
  const MPI_Aint bytes = count * (MPI_Aint)sizeof **base;
  if (is_private) {
    *base = calloc((size_t)count, sizeof **base);
    CHECK(*base != NULL);
    OK(MPI_Win_create(*base, bytes, sizeof **base, MPI_INFO_NULL, MPI_COMM_WORLD, &made));
  } else {
    OK(MPI_Win_allocate(bytes, sizeof **base, MPI_INFO_NULL, MPI_COMM_WORLD, base, &made));
  }
  return made;
}

static void free_window(MPI_Win* win, long* base) {
  OK(MPI_Win_free(win));
  if (is_private) free(base);
}

static MPI_Win windows[threads];
static long* bases[threads];

static void* work(void* argument) {
  const int thread = *(int*)argument;
  MPI_Win win = windows[thread];
  long one = 1, value = 0;
  for (int i = 0; i < rounds; ++i) {
    const int target = (rank + i) % size;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    value += 1;
    OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_unlock(target, win));
  }
  OK(MPI_Win_fence(0, win));
  CHECK(bases[thread][0] == rounds && bases[thread][1] == rounds);
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  return NULL;
}

static MPI_Win common;

/// All threads of a process share one epoch.
static void* share(void* argument) {
  const int thread = *(int*)argument;
  long one = 1;
  for (int i = 0; i < rounds; ++i) {
    OK(MPI_Accumulate(&one, 1, MPI_LONG, (rank + i) % size, thread % 2, 1, MPI_LONG, MPI_SUM, common));
    if (i % (3 + thread) == 0) OK(MPI_Win_flush((rank + i) % size, common));
    if (i % 50 == 49) OK(MPI_Win_flush_all(common));
  }
  return NULL;
}

/// All threads access one target, which has not posted yet.
static void* put_late(void* argument) {
  const int thread = *(int*)argument;
  long number = 100 * rank + thread;
  OK(MPI_Put(&number, 1, MPI_LONG, (rank + 1) % size, thread, 1, MPI_LONG, common));
  return NULL;
}

static void in_threads(void* (*function)(void*)) {
  pthread_t started[threads];
  int numbers[threads];
  for (int i = 0; i < threads; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&started[i], NULL, function, &numbers[i]) == 0);
  }
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(started[i], NULL) == 0);
}

static void one_window_for_all(void) {
  long* base = NULL;
  common = window_of(threads, &base);
  OK(MPI_Win_lock_all(0, common));
  in_threads(share);
  OK(MPI_Win_unlock_all(common));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(base[0] == (long)rounds * threads / 2 && base[1] == (long)rounds * threads / 2);
  OK(MPI_Barrier(MPI_COMM_WORLD));

  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Group world, to, from;
  OK(MPI_Win_get_group(common, &world));
  OK(MPI_Group_incl(world, 1, &left, &from));
  OK(MPI_Group_incl(world, 1, &right, &to));
  if (rank % 2 == 0) usleep(20000);
  OK(MPI_Win_post(from, 0, common));
  OK(MPI_Win_start(to, 0, common));
  in_threads(put_late);
  OK(MPI_Win_complete(common));
  OK(MPI_Win_wait(common));
  for (int i = 0; i < threads; ++i) CHECK(base[i] == 100 * left + i);
  free_window(&common, base);
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&from));
  OK(MPI_Group_free(&to));
}

int main(int argc, char** argv) {
  int provided = -1;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  is_private = argc > 1 && strcmp(argv[1], "private") == 0;
  for (int i = 0; i < threads; ++i) windows[i] = window_of(2, &bases[i]);
  in_threads(work);
  for (int i = 0; i < threads; ++i) free_window(&windows[i], bases[i]);
  one_window_for_all();
  OK(MPI_Finalize());
  return 0;
}
