// Messages of all lengths between all pairs of ranks, in every order: questions and answers, several messages before an
// answer, messages both ways at once, and long pauses in between. What arrives is what was sent, whichever process owns the
// packets in which it travels.
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

enum { longest = 300000, most_messages = 5, rounds = 400 };

static unsigned state;
static unsigned next_number(void) { return state = state * 1103515245u + 12345u; }
/// Lengths around the limits of slots, packets and fragments.
static int length(void) {
  static const int around[] = {0, 88, 89, 500, 1024, 4096, 8192, 8193, 16384, 16385, 65536, 200000};
  unsigned which = next_number() >> 16;
  return around[which % (sizeof around / sizeof *around)] + (int)(which >> 8) % 40;
}
static unsigned char byte_of(int from, int round, int message, int at) {
  return (unsigned char)(from * 131 + round * 31 + message * 17 + at * 7 + at / 4096);
}

static unsigned char *out[most_messages], *in[most_messages];

static void fill(int self, int round, int message, int bytes) {
  for (int at = 0; at < bytes; ++at) out[message][at] = byte_of(self, round, message, at);
}
static void check(int from, int round, int message, int bytes) {
  for (int at = 0; at < bytes; ++at) CHECK(in[message][at] == byte_of(from, round, message, at));
}

static void send_all(int self, int peer, int round, int messages, const int* lengths) {
  for (int i = 0; i < messages; ++i) {
    fill(self, round, i, lengths[i]);
    OK(MPI_Send(out[i], lengths[i], MPI_BYTE, peer, i, MPI_COMM_WORLD));
  }
}
static void receive_all(int peer, int round, int messages, const int* lengths) {
  for (int i = 0; i < messages; ++i) {
    OK(MPI_Recv(in[i], longest, MPI_BYTE, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    check(peer, round, i, lengths[i]);
  }
}
static void exchange(int self, int peer, int round, int messages, const int* lengths) {
  MPI_Request requests[2 * most_messages];
  for (int i = 0; i < messages; ++i) {
    fill(self, round, i, lengths[i]);
    OK(MPI_Irecv(in[i], longest, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Isend(out[i], lengths[i], MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[messages + i]));
  }
  OK(MPI_Waitall(2 * messages, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < messages; ++i) check(peer, round, i, lengths[i]);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int self, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &self));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (int i = 0; i < most_messages; ++i) {
    out[i] = malloc(longest);
    in[i] = malloc(longest);
    CHECK(out[i] != NULL && in[i] != NULL);
  }
  // All ranks draw the same numbers, so they agree on who does what.
  state = 42;
  for (int round = 0; round < rounds; ++round) {
    unsigned kind = (next_number() >> 16) % 8;
    int first = (int)((next_number() >> 16) % (unsigned)size);
    int second = (first + 1 + (int)((next_number() >> 16) % (unsigned)(size - 1))) % size;
    int messages = 1 + (int)((next_number() >> 16) % most_messages);
    int lengths[most_messages], answers[most_messages];
    for (int i = 0; i < most_messages; ++i) {
      lengths[i] = length();
      answers[i] = length();
    }
    if (kind < 5) messages = 1; // mostly questions and answers
    if (self != first && self != second) continue;
    int peer = self == first ? second : first;
    if (kind == 5) {
      exchange(self, peer, round, messages, lengths);
    } else if (self == first) {
      send_all(self, peer, round, messages, lengths);
      if (kind == 0) usleep(2000); // the other rank goes to sleep
      if (kind != 6) receive_all(peer, round, messages, answers);
    } else {
      receive_all(peer, round, messages, lengths);
      if (kind == 1) usleep(2000);
      if (kind != 6) send_all(self, peer, round, messages, answers);
    }
  }
  OK(MPI_Finalize());
  return 0;
}
