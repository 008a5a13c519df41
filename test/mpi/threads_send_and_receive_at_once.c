// MPI_THREAD_MULTIPLE: four threads of each rank exchange messages of all sizes with their partners at the
// same time, by blocking and nonblocking calls and probes, and wait for different requests.
#include "check.h"

#include <pthread.h>
#include <string.h>

enum { threads = 4, rounds = 300, largest = 100000 };
static int rank, size;

static int size_of(int round) {
  static const int sizes[] = {0, 8, 500, 20000, largest};
  return sizes[round % 5];
}

static void* run(void* argument) {
  const int me = (int)(size_t)argument;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  char* out = malloc(largest);
  char* in = malloc(largest);
  for (int round = 0; round < rounds; ++round) {
    const int bytes = size_of(round + me), tag = me * 10 + round % 3;
    memset(out, rank + me + round, (size_t)bytes);
    memset(in, 0, (size_t)bytes);
    MPI_Request requests[2];
    MPI_Status status;
    int count;
    switch (round % 3) {
    case 0:
      OK(MPI_Irecv(in, bytes, MPI_CHAR, left, tag, MPI_COMM_WORLD, &requests[0]));
      OK(MPI_Isend(out, bytes, MPI_CHAR, right, tag, MPI_COMM_WORLD, &requests[1]));
      OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
      break;
    case 1:
      OK(MPI_Sendrecv(out, bytes, MPI_CHAR, right, tag, in, bytes, MPI_CHAR, left, tag, MPI_COMM_WORLD,
                      &status));
      break;
    default: {
      MPI_Message message;
      OK(MPI_Issend(out, bytes, MPI_CHAR, right, tag, MPI_COMM_WORLD, &requests[0]));
      OK(MPI_Mprobe(left, tag, MPI_COMM_WORLD, &message, &status));
      OK(MPI_Get_count(&status, MPI_CHAR, &count));
      CHECK(count == bytes);
      OK(MPI_Mrecv(in, count, MPI_CHAR, &message, &status));
      OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    }
    }
    for (int i = 0; i < bytes; i += 37) CHECK(in[i] == (char)(left + me + round));
  }
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  pthread_t others[threads];
  for (size_t i = 0; i < threads; ++i) CHECK(pthread_create(&others[i], NULL, run, (void*)i) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(others[i], NULL) == 0);
  OK(MPI_Finalize());
  return 0;
}
