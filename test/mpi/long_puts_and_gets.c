// Puts and gets that fill 64 MiB together, more than half of most last-level caches, at odd addresses and of odd lengths: every byte
// arrives, and none beside it changes, whether they go past the cache or not.
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { moves = 40, most_bytes = 2 << 20, distance = most_bytes + 256 };

static size_t bytes_of(int move) { return (size_t)(move % 5 == 4 ? 70000 : most_bytes - 13 * move); }
static size_t at(int move) { return (size_t)move * distance + (size_t)(move * 7 % 61); }
static unsigned char byte_of(int epoch, int move, size_t i) {
  return (unsigned char)(epoch * 41 + move * 5 + i * 3 + (i >> 12));
}

static void fill(unsigned char* to, int epoch) {
  memset(to, 0xee, (size_t)moves * distance);
  for (int move = 0; move < moves; ++move)
    for (size_t i = 0; i < bytes_of(move); ++i) to[at(move) + i] = byte_of(epoch, move, i);
}

/// The bytes of all moves, and 0xee everywhere else.
static void check(const unsigned char* found, int epoch) {
  size_t next = 0;
  for (int move = 0; move < moves; ++move) {
    for (; next < at(move); ++next) CHECK(found[next] == 0xee);
    for (size_t i = 0; i < bytes_of(move); ++i, ++next) CHECK(found[next] == byte_of(epoch, move, i));
  }
  for (; next < (size_t)moves * distance; ++next) CHECK(found[next] == 0xee);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t space = (size_t)moves * distance;
  unsigned char *mine, *private = malloc(space);
  CHECK(private != NULL);
  MPI_Win window;
  OK(MPI_Win_allocate((MPI_Aint)space, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window));
  const int target = (rank + 1) % size;
  for (int epoch = 0; epoch < 3; ++epoch) {
    memset(mine, 0xee, space);
    fill(private, epoch);
    OK(MPI_Win_fence(0, window));
    for (int move = 0; move < moves; ++move)
      OK(MPI_Put(private + at(move), (int)bytes_of(move), MPI_BYTE, target, (MPI_Aint)at(move),
                 (int)bytes_of(move), MPI_BYTE, window));
    OK(MPI_Win_fence(0, window));
    check(mine, epoch);
    memset(private, 0xee, space);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window));
    for (int move = 0; move < moves; ++move)
      OK(MPI_Get(private + at(move), (int)bytes_of(move), MPI_BYTE, target, (MPI_Aint)at(move),
                 (int)bytes_of(move), MPI_BYTE, window));
    OK(MPI_Win_unlock(target, window));
    check(private, epoch);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Win_free(&window));
  free(private);
  OK(MPI_Finalize());
  return 0;
}
