// Rank 0 has more threads than there are processors, and most of them are in blocking calls most of the time.
// Each thread sends to one of the other ranks, which answer, and receives the answers to its own messages.
//   threads_in_blocking_calls_let_each_other_work [threads [messages of each thread]]
#include "check.h"

#include <pthread.h>

enum { most_threads = 64, done_tag = most_threads, large = 20000 };

static int threads, messages, size;

static void* ask(void* argument) {
  const int me = (int)(size_t)argument, to = 1 + me % (size - 1);
  int* out = malloc(large * sizeof(int));
  int* in = malloc(large * sizeof(int));
  CHECK(out != NULL && in != NULL);
  for (int i = 0; i < messages; ++i) {
    const int length = i % 50 == 49 ? large : 1 + i % 40;
    for (int k = 0; k < length; ++k) out[k] = me + i + k;
    if (i % 4 == 0) {
      OK(MPI_Sendrecv(out, length, MPI_INT, to, me, in, large, MPI_INT, to, me, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
    } else if (i % 4 == 1) {
      OK(MPI_Ssend(out, length, MPI_INT, to, me, MPI_COMM_WORLD));
      OK(MPI_Probe(to, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      OK(MPI_Recv(in, large, MPI_INT, to, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (i % 4 == 2) {
      MPI_Message message;
      OK(MPI_Send(out, length, MPI_INT, to, me, MPI_COMM_WORLD));
      OK(MPI_Mprobe(to, me, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
      OK(MPI_Mrecv(in, large, MPI_INT, &message, MPI_STATUS_IGNORE));
    } else {
      MPI_Request requests[2];
      int first;
      OK(MPI_Irecv(in, large, MPI_INT, to, me, MPI_COMM_WORLD, &requests[0]));
      OK(MPI_Isend(out, length, MPI_INT, to, me, MPI_COMM_WORLD, &requests[1]));
      OK(MPI_Waitany(2, requests, &first, MPI_STATUS_IGNORE));
      OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    for (int k = 0; k < length; ++k) CHECK(in[k] == out[k] + 1);
  }
  OK(MPI_Send(NULL, 0, MPI_INT, to, done_tag, MPI_COMM_WORLD));
  free(out);
  free(in);
  return NULL;
}

static void answer(int askers) {
  int* words = malloc(large * sizeof(int));
  CHECK(words != NULL);
  while (askers > 0) {
    MPI_Status status;
    int length;
    OK(MPI_Recv(words, large, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    if (status.MPI_TAG == done_tag) {
      --askers;
      continue;
    }
    OK(MPI_Get_count(&status, MPI_INT, &length));
    for (int k = 0; k < length; ++k) ++words[k];
    OK(MPI_Send(words, length, MPI_INT, 0, status.MPI_TAG, MPI_COMM_WORLD));
  }
  free(words);
}

int main(int argc, char** argv) {
  int provided, rank;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  threads = argc > 1 ? atoi(argv[1]) : 25;
  messages = argc > 2 ? atoi(argv[2]) : 300;
  CHECK(size > 1 && threads <= most_threads);
  double began = MPI_Wtime();
  if (rank == 0) {
    pthread_t all[most_threads];
    for (int i = 0; i < threads; ++i) CHECK(pthread_create(&all[i], NULL, ask, (void*)(size_t)i) == 0);
    for (int i = 0; i < threads; ++i) CHECK(pthread_join(all[i], NULL) == 0);
    printf("%d threads, %d messages each: %.3f s\n", threads, messages, MPI_Wtime() - began);
  } else {
    int askers = 0;
    for (int i = 0; i < threads; ++i) askers += 1 + i % (size - 1) == rank;
    answer(askers);
  }
  OK(MPI_Finalize());
  return 0;
}
