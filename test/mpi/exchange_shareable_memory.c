// Ranks 0 and 1 exchange messages in memory from MPI_Alloc_mem, from small to large. After a first exchange
// that does the one-time setup, failing calls of getpgid() mark the beginning and the end for a tracer.
#include "check.h"

#include <string.h>
#include <unistd.h>

enum { largest = 1 << 20, rounds = 50, marker = 0x7ea12345 };

static void exchange(int rank, char* out, char* in, int count) {
  for (int round = 0; round < count; ++round)
    for (int bytes = 1; bytes <= largest; bytes *= 4) {
      out[0] = out[bytes - 1] = (char)(rank + round);
      if (rank == 0) OK(MPI_Send(out, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
      OK(MPI_Recv(in, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      if (rank == 1) OK(MPI_Send(out, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD));
      CHECK(in[0] == (char)(1 - rank + round) && in[bytes - 1] == (char)(1 - rank + round));
    }
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  char *out, *in;
  OK(MPI_Alloc_mem(largest, MPI_INFO_NULL, &out));
  OK(MPI_Alloc_mem(largest, MPI_INFO_NULL, &in));
  memset(out, 0, largest);
  exchange(rank, out, in, 150);
  getpgid(marker);
  exchange(rank, out, in, rounds);
  getpgid(marker);
  OK(MPI_Free_mem(out));
  OK(MPI_Free_mem(in));
  OK(MPI_Finalize());
  return 0;
}
