// A rank that only sends in a collective returns while the others have not called it yet, up to the eager limit: rank 1 calls
// each one only once rank 0, which has sent, tells it to.
#include "check.h"

enum { longest = 16384, ahead = 20 };

static char out[2 * longest], in[2 * longest];

static void broadcast(int bytes) { OK(MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD)); }
static void begin_broadcast(int bytes) {
  MPI_Request request;
  OK(MPI_Ibcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}
static void gather(int bytes) {
  OK(MPI_Gather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, 1, MPI_COMM_WORLD));
}
static void reduce(int bytes) { OK(MPI_Reduce(out, in, bytes, MPI_SIGNED_CHAR, MPI_MAX, 1, MPI_COMM_WORLD)); }
static void scatter(int bytes) {
  OK(MPI_Scatter(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, 0, MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  static void (*const calls[])(int) = {broadcast, begin_broadcast, gather, reduce, scatter};
  static const int sizes[] = {1, 96, 97, 1024, 8192, longest};
  for (unsigned call = 0; call < sizeof calls / sizeof *calls; ++call)
    for (unsigned size = 0; size < sizeof sizes / sizeof *sizes; ++size) {
      const int times = sizes[size] <= 97 ? ahead : 4;
      OK(MPI_Barrier(MPI_COMM_WORLD));
      if (rank == 1) OK(MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      for (int i = 0; i < times; ++i) calls[call](sizes[size]);
      if (rank == 0) OK(MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD));
    }
  MPI_Finalize();
  return 0;
}
