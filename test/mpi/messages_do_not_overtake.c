// Messages of one sender arrive in the order of sending, with any sizes and any kinds of receives.
#include "check.h"

#include <string.h>

enum { rounds = 400, largest = 200000 };

/// Sizes that are sent inline, in packets and by rendezvous, in irregular order.
static int size_of(int round) {
  static const int sizes[] = {4, 60000, 100, 0, 3000, largest, 8, 20000, 64, 65};
  return sizes[(round * 7 + round / 10) % 10];
}

static void fill(unsigned char* buffer, int round) { memset(buffer, round & 255, (size_t)size_of(round)); }

static void check(const unsigned char* buffer, int round, const MPI_Status* status) {
  int count;
  OK(MPI_Get_count(status, MPI_BYTE, &count));
  CHECK(count == size_of(round));
  for (int i = 0; i < count; i += 97) CHECK(buffer[i] == (round & 255));
}

static void blocking(int rank, int size, unsigned char* buffer, int source, int tag) {
  MPI_Status status;
  if (rank == 0) {
    for (int round = 0; round < rounds; ++round) {
      OK(MPI_Recv(buffer, largest, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status));
      check(buffer, round, &status);
    }
  } else if (rank == size - 1) {
    for (int round = 0; round < rounds; ++round) {
      fill(buffer, round);
      OK(MPI_Send(buffer, size_of(round), MPI_BYTE, 0, 3, MPI_COMM_WORLD));
    }
  }
}

static void nonblocking(int rank, int size) {
  enum { at_once = 40 };
  MPI_Request requests[at_once];
  MPI_Status statuses[at_once];
  if (rank != 0 && rank != size - 1) return;
  unsigned char* buffers = malloc((size_t)at_once * largest);
  for (int round = 0; round < at_once; ++round) {
    unsigned char* buffer = buffers + (size_t)round * largest;
    if (rank == 0) {
      OK(MPI_Irecv(buffer, largest, MPI_BYTE, round % 2 ? size - 1 : MPI_ANY_SOURCE,
                   round % 3 ? 3 : MPI_ANY_TAG, MPI_COMM_WORLD, &requests[round]));
    } else {
      fill(buffer, round);
      OK(MPI_Isend(buffer, size_of(round), MPI_BYTE, 0, 3, MPI_COMM_WORLD, &requests[round]));
    }
  }
  OK(MPI_Waitall(at_once, requests, statuses));
  for (int round = 0; rank == 0 && round < at_once; ++round)
    check(buffers + (size_t)round * largest, round, &statuses[round]);
  free(buffers);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  unsigned char* buffer = malloc(largest);
  blocking(rank, size, buffer, size - 1, 3);
  blocking(rank, size, buffer, MPI_ANY_SOURCE, MPI_ANY_TAG);
  nonblocking(rank, size);
  free(buffer);
  OK(MPI_Finalize());
  return 0;
}
