// Rank 1 (and every odd rank from 5 on) floods rank 0, which receives everything, until rank 0 tells it to
// stop. Rank 0 does so only when its ping-pongs with the other ranks are complete, so a flood that starved
// them would never end.
#include "check.h"

#include <string.h>

enum { flood_tag = 1, ping_tag = 2, stop_tag = 3, trips = 300, largest = 20000, posted = 16 };

static int rank, size;
static int floods(int other) { return other % 2 == 1 && other != 3; }
static const int lengths[] = {8, 1000, largest};

static void flood(void) {
  static char out[largest];
  MPI_Request stop;
  int stopped = 0;
  OK(MPI_Irecv(NULL, 0, MPI_BYTE, 0, stop_tag, MPI_COMM_WORLD, &stop));
  for (long i = 0; !stopped; ++i) {
    OK(MPI_Send(out, i % 64 == 0 ? 1000 : 8, MPI_BYTE, 0, flood_tag, MPI_COMM_WORLD));
    OK(MPI_Test(&stop, &stopped, MPI_STATUS_IGNORE));
  }
  // An empty message is the last one.
  OK(MPI_Send(NULL, 0, MPI_BYTE, 0, flood_tag, MPI_COMM_WORLD));
}

static void ping(void) {
  static char buffer[largest];
  for (int i = 0; i < trips; ++i) {
    memset(buffer, rank + i, largest);
    OK(MPI_Send(buffer, lengths[i % 3], MPI_BYTE, 0, ping_tag, MPI_COMM_WORLD));
    OK(MPI_Recv(buffer, largest, MPI_BYTE, 0, ping_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(buffer[0] == (char)(rank + i + 1) && buffer[lengths[i % 3] - 1] == (char)(rank + i + 1));
  }
}

static void serve(void) {
  static char in[posted + 1][largest];
  MPI_Request requests[posted + 1];
  int left = 0, flooding = 0;
  long before_stop = 0;
  for (int other = 1; other < size; ++other) floods(other) ? ++flooding : (left += trips);
  for (int i = 0; i < posted; ++i)
    OK(MPI_Irecv(in[i], largest, MPI_BYTE, MPI_ANY_SOURCE, flood_tag, MPI_COMM_WORLD, &requests[i]));
  OK(MPI_Irecv(in[posted], largest, MPI_BYTE, MPI_ANY_SOURCE, ping_tag, MPI_COMM_WORLD, &requests[posted]));
  while (flooding > 0) {
    int index, length;
    MPI_Status status;
    OK(MPI_Waitany(posted + 1, requests, &index, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &length));
    if (index < posted) {
      if (length == 0)
        --flooding;
      else
        before_stop += left > 0;
      OK(MPI_Irecv(in[index], largest, MPI_BYTE, MPI_ANY_SOURCE, flood_tag, MPI_COMM_WORLD,
                   &requests[index]));
      continue;
    }
    for (int i = 0; i < length; ++i) ++in[posted][i];
    OK(MPI_Send(in[posted], length, MPI_BYTE, status.MPI_SOURCE, ping_tag, MPI_COMM_WORLD));
    OK(MPI_Irecv(in[posted], largest, MPI_BYTE, MPI_ANY_SOURCE, ping_tag, MPI_COMM_WORLD, &requests[posted]));
    if (--left == 0)
      for (int other = 1; other < size; ++other)
        if (floods(other)) OK(MPI_Send(NULL, 0, MPI_BYTE, other, stop_tag, MPI_COMM_WORLD));
  }
  CHECK(left == 0 && before_stop > 0);
  for (int i = 0; i <= posted; ++i) {
    OK(MPI_Cancel(&requests[i]));
    OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
  }
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size >= 3);
  if (rank == 0)
    serve();
  else if (floods(rank))
    flood();
  else
    ping();
  OK(MPI_Finalize());
  return 0;
}
