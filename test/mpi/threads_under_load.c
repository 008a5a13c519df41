// Eight threads in each rank under MPI_THREAD_MULTIPLE, each with traffic of every kind: no message is lost,
// changed or received by another thread, whatever the other threads do at the same time.
//   threads_under_load          some rounds
//   threads_under_load forever  without end
#include "check.h"

#include <pthread.h>
#include <string.h>

static unsigned char never_received[1200000]; // too long to leave at once
enum { threads = 8, longer = 200000, largest = 600000, burst = 24, rounds = 30 };

static int rank, size, endless;

struct mine {
  int index;
  MPI_Comm communicator; // each thread needs its own for collectives
};

static void fill(unsigned char* at, int bytes, int from, int thread, int stamp) {
  for (int i = 0; i < bytes; i += 61) at[i] = (unsigned char)(from * 31 + thread * 7 + stamp + i);
}
static void look(const unsigned char* at, int bytes, int from, int thread, int stamp) {
  for (int i = 0; i < bytes; i += 61) CHECK(at[i] == (unsigned char)(from * 31 + thread * 7 + stamp + i));
}

static void work(const struct mine* my) {
  static const int lengths[] = {0, 8, 88, 89, 3000, 16384, 16385, longer, largest};
  enum { kinds = sizeof lengths / sizeof *lengths };
  unsigned char *out = malloc(largest), *in = malloc(largest), *window;
  OK(MPI_Alloc_mem(largest, MPI_INFO_NULL, &window));
  const int to = (rank + 1) % size, from = (rank + size - 1) % size, me = my->index;
  for (int round = 0; endless || round < rounds; ++round) {
    MPI_Request requests[burst];
    // Several nonblocking messages at a time, distinguished by tag; polled, then waited for.
    for (int i = 0; i < burst; ++i)
      OK(MPI_Irecv(in + i * 8, 8, MPI_BYTE, from, me * burst + i, MPI_COMM_WORLD, &requests[i]));
    for (int i = burst - 1; i >= 0; --i) {
      fill(out, 8, rank, me, round + i);
      OK(MPI_Send(out, 8, MPI_BYTE, to, me * burst + i, MPI_COMM_WORLD));
    }
    for (int flag = 0; !flag;) OK(MPI_Testsome(burst, requests, &flag, (int[burst]){0}, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(burst, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < burst; ++i) look(in + i * 8, 8, from, me, round + i);
    // One message of each length: inline, packet, train, rendezvous; blocking, synchronous, from shared memory.
    const int bytes = lengths[round % kinds];
    unsigned char* source = round % 3 == 0 ? window : out;
    fill(source, bytes, rank, me, round);
    OK(MPI_Sendrecv(source, bytes, MPI_BYTE, to, 1000 + me, in, largest, MPI_BYTE, from, 1000 + me,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    look(in, bytes, from, me, round);
    MPI_Request request;
    OK(MPI_Issend(source, bytes, MPI_BYTE, to, 0, my->communicator, &request));
    MPI_Message message;
    MPI_Status status;
    OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, my->communicator, &message, &status));
    int length;
    OK(MPI_Get_count(&status, MPI_BYTE, &length));
    CHECK(length == bytes && status.MPI_SOURCE == from);
    OK(MPI_Mrecv(in, length, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    look(in, bytes, from, me, round);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    // A message that is never received is cancelled while others are under way. Only that of a synchronous send surely waits for it.
    OK(MPI_Issend(never_received, sizeof never_received, MPI_BYTE, to, 5000 + me, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    int cancelled;
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled);
    int sum = 0, one = me + round;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, my->communicator));
    CHECK(sum == size * one);
  }
  OK(MPI_Free_mem(window));
  free(out);
  free(in);
}

static void* run(void* argument) {
  work(argument);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  endless = argc > 1;
  struct mine all[threads];
  pthread_t ids[threads];
  for (int i = 0; i < threads; ++i) {
    all[i].index = i;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &all[i].communicator));
  }
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&ids[i], NULL, run, &all[i]) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(ids[i], NULL) == 0);
  for (int i = 0; i < threads; ++i) OK(MPI_Comm_free(&all[i].communicator));
  OK(MPI_Finalize());
  return 0;
}
