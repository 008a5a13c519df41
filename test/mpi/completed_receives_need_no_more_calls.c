// After a program has received its messages, it may stay outside MPI for as long as it likes, and their
// senders still learn that they were received. Rank 1 receives synchronous messages while rank 0 is not in
// MPI and its queue or lane is full, so that there is no slot for a FIN. Then rank 1 waits for a signal from
// rank 0 that does not come through MPI.
#define _DEFAULT_SOURCE
#include "own_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Queue and lane have 64 slots in some rows, 128 at most.
enum { messages = 40, fillers = 200, rounds = 6, longest = 448 };

// Both ranks keep both pipes open, since a pipe that its last reader closes loses what it contains.
static int open_pipe(const char* path) {
  int pipe = open(path, O_RDWR);
  CHECK(pipe >= 0);
  return pipe;
}

static void tell(int pipe) {
  char word = 'x';
  CHECK(write(pipe, &word, 1) == 1);
}

static void await(int pipe) {
  char word = 0;
  CHECK(read(pipe, &word, 1) == 1);
}

static int length_of(int message) { return message % 3 == 0 ? longest : 1 + message; }

static char buffers[messages][longest];
static MPI_Request requests[fillers];
static int values[fillers];

static void wait_for_sends(int way) {
  if (way == 0) OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; way == 1 && i < messages; ++i)
    for (int done = 0; !done;) OK(MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE));
  for (int i = messages; way == 2 && i-- > 0;) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
  char folder[PATH_MAX], path_to_zero[PATH_MAX] = "", path_to_one[PATH_MAX] = "";
  int rank;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  if (rank == 0) {
    make_own_folder(folder);
    path_in(folder, "to_zero", path_to_zero);
    path_in(folder, "to_one", path_to_one);
    CHECK(mkfifo(path_to_zero, 0600) == 0 && mkfifo(path_to_one, 0600) == 0);
  }
  OK(MPI_Bcast(path_to_zero, sizeof path_to_zero, MPI_CHAR, 0, MPI_COMM_WORLD));
  OK(MPI_Bcast(path_to_one, sizeof path_to_one, MPI_CHAR, 0, MPI_COMM_WORLD));
  int to_zero = open_pipe(path_to_zero), to_one = open_pipe(path_to_one);
  for (int round = 0; round < rounds; ++round) {
    if (rank == 0) {
      for (int i = 0; i < messages; ++i) {
        memset(buffers[i], i + round, (size_t)length_of(i));
        OK(MPI_Issend(buffers[i], length_of(i), MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[i]));
      }
      tell(to_one);
      await(to_zero);
      wait_for_sends(round % 3);
      tell(to_one);
      for (int i = 0; i < fillers; ++i) {
        OK(MPI_Recv(&values[i], 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(values[i] == i + round);
      }
    } else if (rank == 1) {
      await(to_one);
      for (int i = 0; i < fillers; ++i) {
        values[i] = i + round;
        OK(MPI_Isend(&values[i], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[i]));
      }
      for (int i = 0; i < messages; ++i) {
        char* buffer = buffers[i];
        OK(MPI_Recv(buffer, longest, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(buffer[0] == (char)(i + round) && buffer[length_of(i) - 1] == (char)(i + round));
      }
      tell(to_zero);
      await(to_one);
      OK(MPI_Waitall(fillers, requests, MPI_STATUSES_IGNORE));
    }
  }
  if (rank == 0) CHECK(unlink(path_to_zero) == 0 && unlink(path_to_one) == 0 && rmdir(folder) == 0);
  OK(MPI_Finalize());
  return 0;
}
