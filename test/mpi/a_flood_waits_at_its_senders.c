// A million messages are sent to a process that does not receive them yet. Each sender has to wait after what
// NEAR_UNEXPECTED allows, the memory of all processes stays bounded, and all messages arrive in order.
//   a_flood_waits_at_its_senders small|mixed [messages]      blocking sends
//   a_flood_waits_at_its_senders requests [messages]         nonblocking sends, which stay incomplete
#include "check.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  flood_tag = 1,
  other_tag = 2,
  report_tag = 3,
  counted_tag = 4,
  largest = 64 << 10,
  bound_kib = 32 << 10,
  envelope = 512 // what a process keeps of a message beside its bytes
};

static int rank, size, mixed, requests;
static long total, unexpected_kib; ///< NEAR_UNEXPECTED

static int length_of(long i) { return !mixed ? 8 : i % 64 == 0 ? largest : i % 8 == 0 ? 1024 : 8; }

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/// Memory that this process occupies: private and shared pages.
static long occupied_kib(void) {
  long kib = -1;
  char line[200];
  FILE* file = fopen("/proc/self/status", "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  fclose(file);
  CHECK(kib > 0);
  return kib;
}

static void check_growth(long before, const char* when) {
  const long grown = occupied_kib() - before;
  // A nonblocking send that waits for its receive keeps an envelope at the receiver, which matching needs.
  const long bound = bound_kib + unexpected_kib + (requests ? total * (size - 1) / 1024 * envelope : 0);
  if (grown > bound) {
    fprintf(stderr, "rank %d has grown by %ld KiB %s\n", rank, grown, when);
    CHECK(grown <= bound);
  }
}

static void send_all(char* buffer) {
  double half_way = 0;
  for (long i = 0; i < total; ++i) {
    if (i == total / 2) half_way = seconds();
    const int length = length_of(i);
    memcpy(buffer, &i, sizeof i);
    buffer[length - 1] ^= (char)rank;
    OK(MPI_Send(buffer, length, MPI_BYTE, 0, flood_tag, MPI_COMM_WORLD));
    buffer[length - 1] = 0;
  }
  OK(MPI_Send(&half_way, 1, MPI_DOUBLE, 0, report_tag, MPI_COMM_WORLD));
}

/// Starts all sends at once. The memory of the process then includes the program's own requests.
static void send_all_nonblocking(void) {
  // More than credits, slots of the queue and slots of a lane together, and what the receiver takes early.
  const long most_complete = 4096 + unexpected_kib * 1024 / envelope;
  double half_way = 0;
  char* words = malloc((size_t)total * 8);
  MPI_Request* requests = malloc((size_t)total * sizeof *requests);
  for (long i = 0; i < total; ++i) {
    memcpy(words + i * 8, &i, 8);
    words[i * 8 + 7] ^= (char)rank;
    OK(MPI_Isend(words + i * 8, 8, MPI_BYTE, 0, flood_tag, MPI_COMM_WORLD, &requests[i]));
  }
  long complete = 0;
  for (long i = 0; i < total; ++i) {
    int flag;
    OK(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE));
    complete += flag;
  }
  CHECK(complete <= most_complete);
  OK(MPI_Send(NULL, 0, MPI_BYTE, 0, counted_tag, MPI_COMM_WORLD));
  for (long i = 0; i < total; ++i) {
    OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    if (i == total / 2) half_way = seconds();
  }
  OK(MPI_Send(&half_way, 1, MPI_DOUBLE, 0, report_tag, MPI_COMM_WORLD));
  free(requests);
  free(words);
}

static void check_message(char* buffer, const MPI_Status* status, long i) {
  int length;
  long stamp;
  OK(MPI_Get_count(status, MPI_BYTE, &length));
  CHECK(length == length_of(i));
  buffer[length - 1] ^= (char)status->MPI_SOURCE;
  memcpy(&stamp, buffer, sizeof stamp);
  CHECK(stamp == i);
}

static void receive_all(char* buffer, long before) {
  usleep(300000); // outside MPI: arriving messages stay in queue and lanes
  check_growth(before, "while it slept");
  for (int from = 1; requests && from < size; ++from) // follows the flood, all of which is unexpected by then
    OK(MPI_Recv(NULL, 0, MPI_BYTE, from, counted_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  // Calls MPI, so that arriving messages are taken from the queue and become unexpected.
  const double until = seconds() + 0.3;
  for (int flag = 0; seconds() < until;) {
    OK(MPI_Iprobe(MPI_ANY_SOURCE, other_tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
  }
  check_growth(before, "while it looked for other messages");
  const double began = seconds();
  long* next = calloc((size_t)size, sizeof *next);
  for (long i = 0; i < total * (size - 1); ++i) {
    // Receives from the last rank first, so that messages of the others wait longer.
    const int from = i < total / 2 ? size - 1 : MPI_ANY_SOURCE;
    MPI_Status status;
    OK(MPI_Recv(buffer, largest, MPI_BYTE, from, flood_tag, MPI_COMM_WORLD, &status));
    check_message(buffer, &status, next[status.MPI_SOURCE]++);
    if (i == total / 4 || i == total) check_growth(before, "while it received");
  }
  free(next);
  for (int from = 1; from < size; ++from) {
    double half_way;
    OK(MPI_Recv(&half_way, 1, MPI_DOUBLE, from, report_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(half_way > began); // the sender was held back until rank 0 received
  }
}

int main(int argc, char** argv) {
  setenv("NEAR_UNEXPECTED", "1m", 0);
  unexpected_kib = atol(getenv("NEAR_UNEXPECTED")) << 10;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(argc > 1 && size > 1);
  mixed = strcmp(argv[1], "mixed") == 0;
  requests = strcmp(argv[1], "requests") == 0;
  total = (argc > 2 ? atol(argv[2]) : 1000000) / (size - 1);
  char* buffer = calloc(largest, 1);
  memset(buffer, 0, largest);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  const long before = occupied_kib();
  if (rank == 0)
    receive_all(buffer, before);
  else if (requests)
    send_all_nonblocking();
  else
    send_all(buffer);
  if (!requests || rank == 0) check_growth(before, "in all");
  OK(MPI_Barrier(MPI_COMM_WORLD));
  free(buffer);
  OK(MPI_Finalize());
  return 0;
}
