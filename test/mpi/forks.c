// A fork in a rank does no harm: in the child, MPI is not initialised; the parent's traffic goes on while the
// child lives.
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { bytes = 300000, rounds = 20 };

static void exchange(int rank, int size, char* out, char* in, int round) {
  memset(out, rank + round, bytes);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const int count = round % 2 ? bytes : 40;
  OK(MPI_Sendrecv(out, count, MPI_CHAR, right, round, in, count, MPI_CHAR, left, round, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  for (int i = 0; i < count; ++i) CHECK(in[i] == (char)(left + round));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  char *out = NULL, *in = malloc(bytes);
  OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &out)); // memory of the segment, which a child does not inherit
  pid_t children[rounds];
  for (int round = 0; round < rounds; ++round) {
    exchange(rank, size, out, in, round);
    children[round] = fork();
    CHECK(children[round] >= 0);
    if (children[round] == 0) {
      int initialized = -1, finalized = -1;
      if (MPI_Initialized(&initialized) != MPI_SUCCESS || initialized != 0) _exit(2);
      if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) _exit(3);
      usleep(1000 * (useconds_t)round);
      if (round % 2) exit(0); // handlers that run at exit must not touch the parent's job
      _exit(0);
    }
  }
  for (int round = 0; round < rounds; ++round) {
    exchange(rank, size, out, in, rounds + round);
    int status = -1;
    CHECK(waitpid(children[round], &status, 0) == children[round]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  OK(MPI_Free_mem(out));
  free(in);
  OK(MPI_Finalize());
  return 0;
}
