// Rank 1 enters a call and waits in it for the others, which come only once a file exists. Rank 1 prints "waiting" and its process ID
// first; a test kills it before it makes the file.
//
//   late_rank scatter|put FILE
#include "check.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { bytes = 1 << 20 };

static void scatter(const char* from, char* to) {
  OK(MPI_Scatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 1, MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  CHECK(argc == 3);
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  const bool has_window = strcmp(argv[1], "put") == 0;
  char *memory = calloc(bytes, 3), *part = calloc(bytes, 1);
  MPI_Win window;
  if (has_window)
    OK(MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
  else
    scatter(memory, part); // what the first call agrees on is known from here on
  if (rank == 1) {
    printf("waiting %d\n", (int)getpid());
    fflush(stdout);
  } else {
    while (access(argv[2], F_OK) != 0) usleep(1000);
  }
  if (has_window) {
    if (rank == 0) {
      OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window));
      OK(MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, window));
      OK(MPI_Win_unlock(1, window));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  } else {
    scatter(memory, part);
  }
  puts("returned");
  MPI_Finalize();
}
