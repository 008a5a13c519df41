// A receiver matches the first large message of a sender that has just died. It must not conclude that ranks
// cannot copy from each other on this machine.
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { bytes = 4 << 20, messages = 8 };

/// Whether the process has ended, even if its parent has not noticed yet.
static int has_ended(int pid) {
  char path[64], text[512] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int file = open(path, O_RDONLY);
  if (file < 0) return 1;
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  const char* name_end = strrchr(text, ')');
  return got <= 0 || name_end == NULL || name_end[2] == 'Z' || name_end[2] == 'X';
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, pid = (int)getpid();
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  char* buffer = calloc(messages, bytes);
  MPI_Request requests[messages];
  if (rank == 0) {
    OK(MPI_Send(&pid, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
    for (int i = 0; i < messages; ++i)
      OK(MPI_Isend(buffer + (size_t)i * bytes, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]));
    raise(SIGKILL);
  }
  signal(SIGTERM, SIG_IGN); // leaves time for the test before the job ends
  OK(MPI_Recv(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  while (!has_ended(pid)) {}
  for (int i = 0; i < messages; ++i)
    OK(MPI_Irecv(buffer + (size_t)i * bytes, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]));
  OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
  return 0;
}
