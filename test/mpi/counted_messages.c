/* The messages that each rank sends are counted by receiver and path. Each rank sends to its right neighbour
 *   3 messages of 8 bytes and an empty one   inline
 *   2 messages of 1000 bytes                 in a packet
 *   1 message of 1 MiB                       by the protocol that NEAR_COPY names
 * and 2 messages of 24 bytes to itself.
 *   counted_messages         checks its own sums
 *   counted_messages hold    then names itself "has-sent" and does not end
 *   counted_messages late    sends after two seconds and ends at once
 *   counted_messages die     rank 1 is killed two seconds after it has sent */
#include "check.h"

#include <near.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { large = 1 << 20 };

static char *out, *in;

static void send(int bytes, int to, int from) {
  memset(out, bytes % 251, (size_t)bytes);
  OK(MPI_Sendrecv(out, bytes, MPI_BYTE, to, 3, in, bytes, MPI_BYTE, from, 3, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  CHECK(memcmp(out, in, (size_t)bytes) == 0);
}

static void sent(const char* path, uint64_t messages, uint64_t bytes) {
  for (int each = 0; each < near_traffic_paths(); ++each) {
    uint64_t its_messages, its_bytes;
    CHECK(near_traffic(each, &its_messages, &its_bytes) == 0);
    if (strcmp(near_traffic_name(each), path) == 0) CHECK(its_messages == messages && its_bytes == bytes);
  }
}

int main(int count, char** arguments) {
  const char* mode = count > 1 ? arguments[1] : "";
  OK(MPI_Init(&count, &arguments));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const char* protocol = getenv("NEAR_COPY");
  CHECK(protocol != NULL);
  // Memory of the segment is copied directly or pipelined through packets; only private memory can use CMA.
  int shareable = strcmp(protocol, "cma") != 0;
  if (shareable) OK(MPI_Alloc_mem(large, MPI_INFO_NULL, &out));
  if (!shareable) out = malloc(large);
  in = malloc(large);
  CHECK(out != NULL && in != NULL);
  if (strcmp(mode, "late") == 0) sleep(2);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < 3; ++i) send(8, right, left);
  send(0, right, left);
  for (int i = 0; i < 2; ++i) send(1000, right, left);
  send(large, right, left);
  for (int i = 0; i < 2; ++i) send(24, rank, rank);
  sent("inline", 6, 3 * 8 + 2 * 24);
  sent("packet", 2, 2000);
  sent(size == 1 ? "direct" : protocol, 1, large); // a process copies its own messages
  if (strcmp(mode, "die") == 0 && rank == 1) {
    sleep(2);
    raise(SIGKILL);
  }
  if (strcmp(mode, "hold") == 0 || strcmp(mode, "die") == 0) {
    prctl(PR_SET_NAME, "has-sent"); // the drivers look for this name
    for (;;) pause();
  }
  free(in);
  if (shareable) OK(MPI_Free_mem(out));
  if (!shareable) free(out);
  return MPI_Finalize() != MPI_SUCCESS;
}
