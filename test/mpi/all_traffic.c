// Every kind of message and every protocol of the transport, in a few rounds. The kill tests kill its
// processes. It checks everything that it receives, so it is also a test by itself.
//   all_traffic          a few rounds
//   all_traffic forever  without end
#include "check.h"

#include <string.h>
#include <unistd.h>

enum {
  largest = 1 << 20,
  huge = 3 << 20,
  packet = 6000,
  train = 40000,
  long_train = 300000,
  ask_for_lane = 40
};

static int rank, size;
static char *out, *in;
static char* shared; // from MPI_Alloc_mem: peers load and store it

static void fill(char* at, int bytes, int round) { memset(at, rank * 37 + round, (size_t)bytes); }
static void look(const char* at, int bytes, int from, int round) {
  const char expected = (char)(from * 37 + round);
  if (bytes != 0) CHECK(at[0] == expected && at[bytes / 2] == expected && at[bytes - 1] == expected);
}

static void exchange(char* buffer, int bytes, int step, int round) {
  const int to = (rank + step) % size, from = (rank + size - step) % size;
  fill(buffer, bytes, round);
  OK(MPI_Sendrecv(buffer, bytes, MPI_BYTE, to, 1, in, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  look(in, bytes, from, round);
}

// Long messages both ways, which fill the runs of packets that they have just brought.
static void exchange_huge(int round) {
  char* buffer = malloc(huge);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int i = 0; i < huge; ++i) buffer[i] = (char)(i * 7 + (i >> 12) + rank * 37 + round);
  OK(MPI_Sendrecv(buffer, huge, MPI_BYTE, to, 1, in, huge, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  for (int i = 0; i < huge; ++i) CHECK(in[i] == (char)(i * 7 + (i >> 12) + from * 37 + round));
  free(buffer);
}

// The sender has nothing else to do, so it can take part in a cooperative copy.
static void help(int round) {
  char* buffer = malloc(huge);
  if (rank % 2 == 0 && rank + 1 < size) {
    fill(buffer, huge, round);
    OK(MPI_Send(buffer, huge, MPI_BYTE, rank + 1, 5, MPI_COMM_WORLD));
  } else if (rank % 2 == 1) {
    OK(MPI_Recv(buffer, huge, MPI_BYTE, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    look(buffer, huge, rank - 1, round);
  }
  free(buffer);
}

// Each sender in turn sends many small messages to one receiver, so more pairs talk than there are lanes.
static void talk(int round) {
  const int to = round % size;
  for (int from = 0; from < size; ++from) {
    for (int i = 0; i < ask_for_lane; ++i) {
      const int bytes = i % 8 == 0 ? packet : i;
      fill(out, bytes, round);
      if (rank == from) OK(MPI_Send(out, bytes, MPI_BYTE, to, 2, MPI_COMM_WORLD));
      if (rank == to) {
        OK(MPI_Recv(in, bytes, MPI_BYTE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        look(in, bytes, from, round);
      }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); // the next sender requests the lane of this one
  }
}

// More messages than there are slots, packets and credits, before any rank receives.
static void flood(int round) {
  enum { many = 160 };
  MPI_Request requests[many];
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  fill(out, packet, round);
  for (int i = 0; i < many; ++i)
    OK(MPI_Isend(out, i % 4 == 0 ? packet : 8, MPI_BYTE, to, 3, MPI_COMM_WORLD, &requests[i]));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < many; ++i) {
    OK(MPI_Recv(in, packet, MPI_BYTE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    look(in, i % 4 == 0 ? packet : 8, from, round);
  }
  OK(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
}

// Messages in several packets, before their receives are posted and after.
static void send_trains(int round) {
  enum { some = 3 };
  MPI_Request requests[some];
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  fill(out, train, round);
  for (int i = 0; i < some; ++i) OK(MPI_Isend(out, train, MPI_BYTE, to, 9, MPI_COMM_WORLD, &requests[i]));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < some; ++i) {
    OK(MPI_Recv(in, train, MPI_BYTE, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    look(in, train, from, round);
  }
  OK(MPI_Waitall(some, requests, MPI_STATUSES_IGNORE));
  for (int step = 1; step < size; ++step) exchange(out, train, step, round);
  for (int step = 1; step < size; ++step) exchange(out, long_train, step, round);
}

// The odd rank receives while the even one is outside MPI and has a full queue, so FINs find no slot.
static void leave_fins(int round) {
  enum { few = 3, fillers = 100 };
  MPI_Request requests[fillers];
  int values[few] = {round, round, round}, value = round, got = -1;
  if (rank % 2 == 0 && rank + 1 < size) {
    for (int i = 0; i < few; ++i)
      OK(MPI_Issend(&values[i], 1, MPI_INT, rank + 1, 7, MPI_COMM_WORLD, &requests[i]));
    usleep(5000);
    OK(MPI_Waitall(few, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < fillers; ++i)
      OK(MPI_Recv(&got, 1, MPI_INT, rank + 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == round);
  } else if (rank % 2 == 1) {
    usleep(1000);
    for (int i = 0; i < fillers; ++i)
      OK(MPI_Isend(&value, 1, MPI_INT, rank - 1, 8, MPI_COMM_WORLD, &requests[i]));
    for (int i = 0; i < few; ++i)
      OK(MPI_Recv(&values[i], 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(fillers, requests, MPI_STATUSES_IGNORE));
  }
}

static void cancel_and_probe(int round) {
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Request lost, found;
  MPI_Status status;
  MPI_Message message;
  OK(MPI_Issend(out, largest, MPI_BYTE, to, 98, MPI_COMM_WORLD, &lost)); // this tag is never received
  fill(shared, largest, round);
  OK(MPI_Issend(shared, largest, MPI_BYTE, to, 4, MPI_COMM_WORLD, &found));
  OK(MPI_Mprobe(from, 4, MPI_COMM_WORLD, &message, &status));
  OK(MPI_Mrecv(in, largest, MPI_BYTE, &message, MPI_STATUS_IGNORE));
  look(in, largest, from, round);
  OK(MPI_Wait(&found, MPI_STATUS_IGNORE));
  OK(MPI_Cancel(&lost));
  OK(MPI_Wait(&lost, MPI_STATUS_IGNORE));
}

static void collect(int round) {
  int sum = 0;
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size * (size - 1) / 2);
  if (rank == round % size) fill(out, 50000, round);
  OK(MPI_Bcast(out, 50000, MPI_BYTE, round % size, MPI_COMM_WORLD));
  look(out, 50000, round % size, round);
}

static MPI_Win in_segment, in_private, dynamic;
static long *counters, own_counters[2]; // in the window of each rank: accumulated, put

// All ranks access one target: under locks, by plain stores and through the kernel.
static void reach(MPI_Win win, int round) {
  const int target = round % size;
  long one = 1, all[2] = {0, 0};
  OK(MPI_Win_lock(rank % 2 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win));
  OK(MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win));
  OK(MPI_Win_unlock(target, win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, target, MPI_MODE_NOCHECK, win)); // not on the fast path
  OK(MPI_Win_unlock(target, win));
  OK(MPI_Win_fence(0, win));
  if (rank == 0) OK(MPI_Put(&one, 1, MPI_LONG, target, 1, 1, MPI_LONG, win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Get(all, 2, MPI_LONG, target, 0, 2, MPI_LONG, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(all[0] == size * (round / size + 1) && all[1] == 1);
}

// Reads memory that a neighbour has attached.
static void attach(int round) {
  static char piece[64];
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Aint own, its;
  fill(piece, sizeof piece, round);
  OK(MPI_Win_attach(dynamic, piece, sizeof piece));
  OK(MPI_Get_address(piece, &own));
  OK(MPI_Sendrecv(&own, 1, MPI_AINT, to, 6, &its, 1, MPI_AINT, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, from, 0, dynamic));
  OK(MPI_Get(in, sizeof piece, MPI_BYTE, from, its, sizeof piece, MPI_BYTE, dynamic));
  OK(MPI_Win_unlock(from, dynamic));
  look(in, sizeof piece, from, round);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_detach(dynamic, piece));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int rounds = argc > 1 ? -1 : 4;
  out = malloc(largest);
  in = malloc(huge);
  OK(MPI_Alloc_mem(largest, MPI_INFO_NULL, &shared));
  memset(out, 0, largest);
  OK(MPI_Win_allocate(sizeof own_counters, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counters,
                      &in_segment));
  // If the kernel forbids copies between processes, creating a window of private memory fails with an error.
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int class = MPI_SUCCESS;
  MPI_Error_class(MPI_Win_create(own_counters, sizeof own_counters, sizeof(long), MPI_INFO_NULL,
                                 MPI_COMM_WORLD, &in_private),
                  &class);
  while (class == MPI_ERR_PROC_ABORTED) pause(); // a test of kills has killed another rank, and the job ends
  CHECK(class == MPI_SUCCESS || class == MPI_ERR_UNSUPPORTED_OPERATION);
  const int reached = class == MPI_SUCCESS;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
  if (reached) OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
  for (int round = 0; round != rounds; ++round) {
    talk(round);
    for (int bytes = 0; bytes <= largest; bytes = bytes == 0 ? 1 : bytes * 8)
      exchange(out, bytes, 1 + round % size, round);
    exchange(shared, largest, 1, round);
    exchange_huge(round);
    help(round);
    flood(round);
    send_trains(round);
    leave_fins(round);
    cancel_and_probe(round);
    collect(round);
    reach(in_segment, round);
    if (reached) reach(in_private, round);
    if (reached) attach(round);
    // One rank sleeps outside MPI, so the others wait for it and sleep.
    if (rank == round % size) usleep(3000);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (round == 0 && rank == 0) {
      puts("running");
      fflush(stdout);
    }
  }
  if (reached) OK(MPI_Win_free(&dynamic));
  if (reached) OK(MPI_Win_free(&in_private));
  OK(MPI_Win_free(&in_segment));
  // A message that is never received does not hold up MPI_Finalize.
  MPI_Request request;
  OK(MPI_Isend(out, largest, MPI_BYTE, (rank + 1) % size, 99, MPI_COMM_WORLD, &request));
  OK(MPI_Request_free(&request));
  if (rank == 0) usleep(20000); // the others reach MPI_Finalize first and wait for it there
  OK(MPI_Finalize());
  return 0;
}
