// first_large_messages COUNT [BYTES]: ranks 0 and 1 exchange COUNT messages (of 1 MiB by default), the first
// ones between them, and rank 0 prints the microseconds per message. Both write their buffers before sending.
#include "check.h"

#include <string.h>

int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 1, bytes = argc > 2 ? atoi(argv[2]) : 1 << 20;
  OK(MPI_Init(&argc, &argv));
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
  memset(out, 1, (size_t)bytes);
  memset(in, 2, (size_t)bytes);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  double began = MPI_Wtime();
  for (int i = 0; i < count && rank < 2; ++i) {
    memset(out, i % 100 + 3, (size_t)bytes);
    if (rank == 0) OK(MPI_Send(out, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(in, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in[0] == i % 100 + 3 && in[bytes - 1] == i % 100 + 3);
    if (rank == 1) OK(MPI_Send(out, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD));
  }
  if (rank == 0) printf("%.2f\n", (MPI_Wtime() - began) * 1e6 / (2 * count));
  OK(MPI_Finalize());
  free(out);
  free(in);
  return 0;
}
