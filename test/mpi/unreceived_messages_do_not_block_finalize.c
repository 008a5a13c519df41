// MPI_Finalize returns although messages of every kind are never received: messages to a process that has
// already finished, to one that also has such messages, and to itself. Messages that are received late still
// arrive.
#include "check.h"

#include <string.h>
#include <unistd.h>

enum { small = 8, medium = 4000, large = 1 << 20, many = 200, late_tag = 7, lost_tag = 8 };

static char buffer[large];

static void leave_behind(int to) {
  const int sizes[] = {small, medium, large};
  for (int i = 0; i < many; ++i) {
    MPI_Request request;
    OK(MPI_Isend(buffer, sizes[i % 3], MPI_CHAR, to, lost_tag, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Issend(buffer, small, MPI_CHAR, to, lost_tag, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
  }
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  // All processes except the last, which finishes at once, send such messages to all processes.
  if (rank != size - 1 || size == 1)
    for (int to = 0; to < size; ++to) leave_behind(to);
  // With an argument, the last process waits for a while first, and so takes some of these messages early; it finishes while the data of
  // another one may be on its way.
  if (argc > 1 && rank == 0) {
    usleep(5000);
    OK(MPI_Send(NULL, 0, MPI_CHAR, size - 1, late_tag, MPI_COMM_WORLD));
  }
  if (argc > 1 && rank == size - 1)
    OK(MPI_Recv(NULL, 0, MPI_CHAR, 0, late_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  // Rank 0 is in MPI_Finalize long before rank 1 receives its message, which must not be lost.
  if (size > 2) {
    static char late[large];
    if (rank == 0) {
      memset(late, 42, large);
      MPI_Request request;
      OK(MPI_Isend(late, large, MPI_CHAR, 1, late_tag, MPI_COMM_WORLD, &request));
      OK(MPI_Request_free(&request));
    } else if (rank == 1) {
      usleep(200000);
      OK(MPI_Recv(late, large, MPI_CHAR, 0, late_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(late[0] == 42 && late[large - 1] == 42);
    }
  }
  OK(MPI_Finalize());
  return 0;
}
