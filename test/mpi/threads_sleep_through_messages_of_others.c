// Many threads of rank 0 wait, each for a message of its own that comes at the end, while the main thread and
// rank 1 exchange messages. Each of these wakes at most one of the waiting threads, not all of them.
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <sys/resource.h>

enum { threads = 24, messages = 1000, main_tag = threads };

static long switches[threads];

static void* wait_for_own(void* argument) {
  const int me = (int)(size_t)argument;
  struct rusage before, after;
  int word = 0;
  CHECK(getrusage(RUSAGE_THREAD, &before) == 0);
  OK(MPI_Recv(&word, 1, MPI_INT, 1, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(word == me);
  CHECK(getrusage(RUSAGE_THREAD, &after) == 0);
  switches[me] = after.ru_nvcsw - before.ru_nvcsw;
  return NULL;
}

int main(int argc, char** argv) {
  int provided, rank;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  if (rank == 0) {
    pthread_t all[threads];
    double began = MPI_Wtime();
    for (int i = 0; i < threads; ++i)
      CHECK(pthread_create(&all[i], NULL, wait_for_own, (void*)(size_t)i) == 0);
    for (int i = 0; i < messages; ++i) {
      int word = -1;
      OK(MPI_Sendrecv(&i, 1, MPI_INT, 1, main_tag, &word, 1, MPI_INT, 1, main_tag, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
      CHECK(word == i + 1);
    }
    long sum = 0;
    for (int i = 0; i < threads; ++i) CHECK(pthread_join(all[i], NULL) == 0);
    for (int i = 0; i < threads; ++i) sum += switches[i];
    // A sleep may end every 10 ms for a poll, and a thread that wakes up may find the lock taken.
    double looks = 2 * threads * (MPI_Wtime() - began) / 0.01;
    printf("%d messages, %ld switches of waiting threads, %.0f may be for looks\n", messages, sum, looks);
    CHECK((double)sum <= 4.0 * messages + 10 * threads + looks);
  } else if (rank == 1) {
    for (int i = 0; i < messages; ++i) {
      int word = -1;
      OK(MPI_Recv(&word, 1, MPI_INT, 0, main_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      ++word;
      OK(MPI_Send(&word, 1, MPI_INT, 0, main_tag, MPI_COMM_WORLD));
    }
    for (int i = 0; i < threads; ++i) OK(MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD));
  }
  OK(MPI_Finalize());
  return 0;
}
