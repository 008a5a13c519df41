// There are fewer lanes than pairs that talk. While lanes are granted and returned, the messages of each
// sender stay in order and complete: small ones and packets, received from one source or from any.
#include "check.h"

#include <string.h>

// A sender asks for the lane after 16 messages, and again after each 4096. In a burst it asks twice, so that at the second time the lane
// has carried nothing since the first.
enum { turns = 4, burst = 9000, longest = 3000 };

static int length_of(int i) { return i % 97 == 0 ? longest : 4 + i % 120; }

static void send_burst(int from, int turn) {
  static char out[longest];
  for (int i = 0; i < burst; ++i) {
    int stamp = turn * burst + i;
    memcpy(out, &stamp, sizeof stamp);
    out[length_of(i) - 1] = (char)(stamp ^ from); // overwrites the stamp in the shortest message
    OK(MPI_Send(out, length_of(i), MPI_CHAR, 0, turn, MPI_COMM_WORLD));
  }
}

static void check_message(const char* in, int length, int from, int turn, int i) {
  int stamp = turn * burst + i, seen;
  CHECK(length == length_of(i));
  CHECK(in[length - 1] == (char)(stamp ^ from));
  memcpy(&seen, in, sizeof seen);
  CHECK(length == 4 || seen == stamp);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  static char in[longest];
  for (int turn = 0; turn < turns; ++turn) {
    // First one sender at a time, so that each requests the lane; then all at once.
    for (int from = 1; from < size; ++from) {
      if (rank == from) send_burst(from, turn);
      if (rank == 0)
        for (int i = 0; i < burst; ++i) {
          MPI_Status status;
          int length;
          OK(MPI_Recv(in, longest, MPI_CHAR, from, turn, MPI_COMM_WORLD, &status));
          OK(MPI_Get_count(&status, MPI_CHAR, &length));
          check_message(in, length, from, turn, i);
        }
      OK(MPI_Barrier(MPI_COMM_WORLD)); // otherwise the next one begins at once
    }
    if (rank != 0) send_burst(rank, turn);
    if (rank == 0) {
      int next[64] = {0};
      for (int i = 0; i < burst * (size - 1); ++i) {
        MPI_Status status;
        int length;
        OK(MPI_Recv(in, longest, MPI_CHAR, MPI_ANY_SOURCE, turn, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_CHAR, &length));
        check_message(in, length, status.MPI_SOURCE, turn, next[status.MPI_SOURCE]++);
      }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Finalize());
  return 0;
}
