// Two threads of each process create and use communicators at the same time, each from its own communicator.
#include "check.h"

#include <pthread.h>

enum { threads = 2, rounds = 40 };
static MPI_Comm bases[threads];

static void* create_and_use(void* argument) {
  MPI_Comm base = *(MPI_Comm*)argument;
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm copy, part;
    int rank, size, sum = 0;
    OK(MPI_Comm_dup(base, &copy));
    OK(MPI_Comm_rank(copy, &rank));
    OK(MPI_Comm_split(copy, rank % 2, rank, &part));
    OK(MPI_Comm_rank(part, &rank));
    OK(MPI_Comm_size(part, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&copy));
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  pthread_t running[threads];
  for (int i = 0; i < threads; ++i) OK(MPI_Comm_dup(MPI_COMM_WORLD, &bases[i]));
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&running[i], NULL, create_and_use, &bases[i]) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(running[i], NULL) == 0);
  for (int i = 0; i < threads; ++i) OK(MPI_Comm_free(&bases[i]));
  OK(MPI_Finalize());
  return 0;
}
