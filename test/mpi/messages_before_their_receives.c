// Seven messages of all kinds (inline, packet, RTS) reach rank 0 before their receives. An eighth message,
// which ends the wait, finds its receive posted. For the tests that read the counters.
//   messages_before_their_receives       ends
//   messages_before_their_receives hang  names itself "all-here" and waits forever
#include "check.h"
#include <string.h>
#include <sys/prctl.h>

enum { large = 1 << 20, early = 1, last = 2, go = 3, never = 4 };

static char data[large];

int main(int count, char** arguments) {
  static const int lengths[] = {0, 8, 88, 89, 1000, 8192, large};
  enum { messages = sizeof lengths / sizeof *lengths };
  OK(MPI_Init(&count, &arguments));
  int rank, word = 0;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  if (rank == 0) {
    MPI_Request request;
    OK(MPI_Irecv(&word, 1, MPI_INT, 1, last, MPI_COMM_WORLD, &request));
    OK(MPI_Send(&word, 1, MPI_INT, 1, go, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < messages; ++i)
      OK(MPI_Recv(data, large, MPI_BYTE, 1, early, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else {
    MPI_Request requests[messages];
    OK(MPI_Recv(&word, 1, MPI_INT, 0, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < messages; ++i)
      OK(MPI_Isend(data, lengths[i], MPI_BYTE, 0, early, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Send(&word, 1, MPI_INT, 0, last, MPI_COMM_WORLD));
    OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
  }
  if (count > 1 && strcmp(arguments[1], "hang") == 0) {
    prctl(PR_SET_NAME, "all-here");
    OK(MPI_Recv(&word, 1, MPI_INT, 1 - rank, never, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  OK(MPI_Finalize());
  return 0;
}
