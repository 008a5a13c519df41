// Rank 0 sends more messages than there are free slots or packets for, while rank 1 is busy elsewhere for a
// second. Then all of them arrive. Rank 0's count of sleeps shows that it slept meanwhile instead of polling.
//   a_blocked_sender_sleeps slots     many small messages, few slots
//   a_blocked_sender_sleeps packets   a pipelined large message, whose bytes rank 1 has asked for
#include "check.h"
#include <string.h>
#include <unistd.h>

enum { many = 500, large = 4 << 20, word_tag = 1, large_tag = 2 };

static int words[many];
static unsigned char data[large];
static MPI_Request requests[many];

static void send_many(void) {
  for (int i = 0; i < many; ++i) {
    words[i] = i;
    OK(MPI_Isend(&words[i], 1, MPI_INT, 1, word_tag, MPI_COMM_WORLD, &requests[i]));
  }
  OK(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
}

static void receive_many(void) {
  sleep(1);
  for (int i = 0; i < many; ++i) {
    int word = -1;
    OK(MPI_Recv(&word, 1, MPI_INT, 0, word_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(word == i);
  }
}

static void send_large(void) {
  for (int i = 0; i < large; ++i) data[i] = (unsigned char)(i * 7 >> 3);
  OK(MPI_Isend(data, large, MPI_BYTE, 1, large_tag, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Send(&words[0], 1, MPI_INT, 1, word_tag, MPI_COMM_WORLD));
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
}

static void receive_large(void) {
  OK(MPI_Irecv(data, large, MPI_BYTE, 0, large_tag, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Recv(&words[0], 1, MPI_INT, 0, word_tag, MPI_COMM_WORLD,
              MPI_STATUS_IGNORE)); // sent after the RTS
  sleep(1);
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  for (int i = 0; i < large; ++i) CHECK(data[i] == (unsigned char)(i * 7 >> 3));
}

int main(int count, char** arguments) {
  OK(MPI_Init(&count, &arguments));
  CHECK(count == 2);
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  int slots = strcmp(arguments[1], "slots") == 0;
  for (int round = 0; round < 2; ++round) { // the second time through a lane, if lanes are enabled
    if (rank == 0)
      slots ? send_many() : send_large();
    else
      slots ? receive_many() : receive_large();
  }
  OK(MPI_Finalize());
  return 0;
}
