// One MPI call of 8 bytes again and again, always in the same situation, so that bench/instructions can count
// what it executes. Rank 0 is the one that is counted; what the others do is timed through a file that all
// map, not through MPI, so that the counted call finds exactly what its scenario says.
//
//   calls SCENARIO COUNT FILE
//
//   send, isend   the receiver has taken everything that was sent before
//   recv          the message lies in shared memory, no call of MPI has seen it
//   irecv         nothing has arrived
//   test_done     the request is posted, and the message lies in shared memory
//   test_empty    the request is posted, and nothing has arrived; every other rank has sent something before
//   window_8, window_256   so many receives of 8 or 256 bytes are posted, and all of their messages lie in
//                 shared memory when MPI_Waitall is called
//   iallreduce    the other rank's value is there when MPI_Wait is called
//   publish       broadcasts of the counted rank; the other one has read all that came before
//   read, reduce  the other rank, root of a broadcast or not of a reduction, has returned from the call
//   pack, unpack  8 doubles, every second one
//   send_gaps, recv_gaps   as send and recv, 4 doubles, every second one
//   one_sided     on a window of MPI_Win_allocate, of which nobody else holds a lock
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct steps {
  _Alignas(64) _Atomic long counted; // how often rank 0 has done its part
  _Alignas(64) _Atomic long partner; // how often rank 1 has
};

enum { window = 32 }; // receives that are posted together; fits into what a sender may have under way

static struct steps* steps;
static char data[8], space[window][256];

static void await(_Atomic long* step, long number) {
  while (atomic_load(step) < number) sched_yield();
}

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "calls: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void partner_sends(long number) {
  MPI_Send(data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  atomic_store(&steps->partner, number);
}

static void partner_receives(long number) {
  MPI_Recv(data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  atomic_store(&steps->partner, number);
}

static MPI_Request post(void) {
  MPI_Request request;
  MPI_Irecv(data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  return request;
}

// Each scenario has the part of rank 0 and that of rank 1, for the message of this number.

static void send_0(long number) {
  await(&steps->partner, number - 1);
  MPI_Send(data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
}

static void isend_0(long number) {
  MPI_Request request;
  await(&steps->partner, number - 1);
  MPI_Isend(data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void recv_0(long number) {
  await(&steps->partner, number);
  MPI_Recv(data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  atomic_store(&steps->counted, number);
}

static void irecv_0(long number) {
  MPI_Request request = post();
  atomic_store(&steps->counted, number);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void test_done_0(long number) {
  int done = 0;
  MPI_Request request = post();
  atomic_store(&steps->counted, number);
  await(&steps->partner, number);
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  require(done, "MPI_Test did not find the message that has arrived");
}

static void window_0(long number, int bytes) {
  MPI_Request requests[window];
  MPI_Status statuses[window];
  for (int i = 0; i < window; ++i) MPI_Irecv(space[i], bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
  atomic_store(&steps->counted, number);
  await(&steps->partner, number);
  MPI_Waitall(window, requests, statuses);
}

static void window_1(long number, int bytes) {
  await(&steps->counted, number);
  for (int i = 0; i < window; ++i) MPI_Send(space[i], bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  atomic_store(&steps->partner, number);
}

static void window_8_0(long number) { window_0(number, 8); }
static void window_8_1(long number) { window_1(number, 8); }
static void window_256_0(long number) { window_0(number, 256); }
static void window_256_1(long number) { window_1(number, 256); }

static void send_after_0(long number) { // rank 0 has done its part of this message
  await(&steps->counted, number);
  partner_sends(number);
}

static void send_ahead_of_0(long number) { // rank 0 has received the message before
  await(&steps->counted, number - 1);
  partner_sends(number);
}

static void iallreduce_0(long number) {
  MPI_Request request;
  long own = number, sum = 0;
  MPI_Iallreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
  atomic_store(&steps->counted, number);
  await(&steps->partner, number);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  require(sum == 2 * number, "wrong sum");
}

static void iallreduce_1(long number) {
  MPI_Request request;
  long own = number, sum = 0;
  await(&steps->counted, number);
  MPI_Iallreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
  atomic_store(&steps->partner, number);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void publish_0(long number) {
  await(&steps->partner, number - 1);
  MPI_Bcast(data, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void publish_1(long number) {
  MPI_Bcast(data, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
  atomic_store(&steps->partner, number);
}

static void read_0(long number) {
  await(&steps->partner, number);
  MPI_Bcast(data, 8, MPI_BYTE, 1, MPI_COMM_WORLD);
  atomic_store(&steps->counted, number);
}

static void read_1(long number) {
  await(&steps->counted, number - 1);
  MPI_Bcast(data, 8, MPI_BYTE, 1, MPI_COMM_WORLD);
  atomic_store(&steps->partner, number);
}

static void reduce_0(long number) {
  long own = number, sum = 0;
  await(&steps->partner, number);
  MPI_Reduce(&own, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  atomic_store(&steps->counted, number);
  require(sum == 2 * number, "wrong sum");
}

static void reduce_1(long number) {
  long own = number;
  await(&steps->counted, number - 1);
  MPI_Reduce(&own, NULL, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  atomic_store(&steps->partner, number);
}

// Data with gaps: every second double.
static double apart[16], together[8];
static MPI_Datatype every_second(int count) {
  static MPI_Datatype type = MPI_DATATYPE_NULL;
  if (type == MPI_DATATYPE_NULL) {
    MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
  }
  return type;
}

static void pack_0(long number) {
  int position = 0;
  apart[14] = (double)number;
  MPI_Pack(apart, 1, every_second(8), together, sizeof together, &position, MPI_COMM_WORLD);
  require(together[7] == (double)number, "MPI_Pack did not pack");
}

static void unpack_0(long number) {
  int position = 0;
  together[7] = (double)number;
  MPI_Unpack(together, sizeof together, &position, apart, 1, every_second(8), MPI_COMM_WORLD);
  require(apart[14] == (double)number, "MPI_Unpack did not unpack");
}

static void idle_1(long number) { (void)number; }

static void send_gaps_0(long number) {
  await(&steps->partner, number - 1);
  MPI_Send(apart, 1, every_second(4), 1, 0, MPI_COMM_WORLD);
}

static void send_gaps_1(long number) {
  MPI_Recv(apart, 1, every_second(4), 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  atomic_store(&steps->partner, number);
}

static void recv_gaps_0(long number) {
  await(&steps->partner, number);
  MPI_Recv(apart, 1, every_second(4), 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  require(apart[6] == (double)number, "wrong data");
  atomic_store(&steps->counted, number);
}

static void recv_gaps_1(long number) {
  await(&steps->counted, number - 1);
  apart[6] = (double)number;
  MPI_Send(apart, 1, every_second(4), 0, 0, MPI_COMM_WORLD);
  atomic_store(&steps->partner, number);
}

static void test_empty(int rank, int size, long count) {
  if (rank != 0) MPI_Send(data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  for (int other = 1; rank == 0 && other < size; ++other)
    MPI_Recv(data, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) {
    MPI_Request request = post();
    for (long i = 0; i < count; ++i) {
      int done;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      require(!done, "MPI_Test found a message that nobody sent");
    }
    atomic_store(&steps->counted, 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    send_after_0(1);
  }
}

static void one_sided(int rank, int size, long count) {
  long *part, one = 1, old;
  (void)size;
  MPI_Win win;
  MPI_Win_allocate(sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  *part = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = 0; rank == 0 && i < count; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Put(&i, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
    MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush(1, win);
    MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, win);
    require(old == i + 1, "MPI_Fetch_and_op did not return the sum");
    MPI_Compare_and_swap(&i, &one, &old, MPI_LONG, 1, 0, win);
    MPI_Get(&old, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
    MPI_Win_unlock(1, win);
    require(old == i + 2, "MPI_Get did not return the sum");
  }
  MPI_Win_free(&win);
}

static const struct {
  const char* name;
  void (*of_rank[2])(long number);
  void (*of_all)(int rank, int size, long count); // instead
} scenarios[] = {
    {"send", {send_0, partner_receives}, NULL},
    {"isend", {isend_0, partner_receives}, NULL},
    {"recv", {recv_0, send_ahead_of_0}, NULL},
    {"irecv", {irecv_0, send_after_0}, NULL},
    {"test_done", {test_done_0, send_after_0}, NULL},
    {"test_empty", {NULL, NULL}, test_empty},
    {"one_sided", {NULL, NULL}, one_sided},
    {"window_8", {window_8_0, window_8_1}, NULL},
    {"window_256", {window_256_0, window_256_1}, NULL},
    {"iallreduce", {iallreduce_0, iallreduce_1}, NULL},
    {"publish", {publish_0, publish_1}, NULL},
    {"read", {read_0, read_1}, NULL},
    {"reduce", {reduce_0, reduce_1}, NULL},
    {"pack", {pack_0, idle_1}, NULL},
    {"unpack", {unpack_0, idle_1}, NULL},
    {"send_gaps", {send_gaps_0, send_gaps_1}, NULL},
    {"recv_gaps", {recv_gaps_0, recv_gaps_1}, NULL},
};

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  int file = open(argv[3], O_RDWR), rank, size;
  steps = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (steps == MAP_FAILED) {
    perror(argv[3]);
    return 2;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int known = 0;
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; ++i) {
    if (strcmp(scenarios[i].name, argv[1]) != 0) continue;
    known = 1;
    if (scenarios[i].of_all)
      scenarios[i].of_all(rank, size, atol(argv[2]));
    else if (rank < 2)
      for (long number = 1; number <= atol(argv[2]); ++number) scenarios[i].of_rank[rank](number);
  }
  require(known, "no such scenario");
  MPI_Finalize();
  return 0;
}
