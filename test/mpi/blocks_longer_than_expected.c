// A block that is longer than its receiver says is an error there only, although another block arrives as a message.
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { long_bytes = 300000, most_ranks = 16 };

static int rank, size;
static unsigned char *out, *in;
static int out_bytes[most_ranks], in_bytes[most_ranks], out_at[most_ranks], in_at[most_ranks];

/// Returns the error class of a call.
static int class_of(int code) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  return error_class;
}

/// Rank 0's block for rank 1, or in a gatherv rank 1's for rank 0, is longer than its receiver says. The last rank's block for that one is a
/// message, and arrives.
static void send_too_much(int bytes) {
  const int last = size - 1;
  for (int other = 0, sent = 0, received = 0; other < size; ++other) {
    out_bytes[other] = rank == 0 && other == 1                  ? bytes
                       : rank == last && last > 1 && other == 1 ? long_bytes
                                                                : 4;
    in_bytes[other] = rank == 1 && other == last && last > 1 ? long_bytes : 4;
    out_at[other] = sent;
    in_at[other] = received;
    memset(out + sent, rank + 1, (size_t)out_bytes[other]);
    sent += out_bytes[other];
    received += in_bytes[other];
  }
  int code = MPI_Alltoallv(out, out_bytes, out_at, MPI_BYTE, in, in_bytes, in_at, MPI_BYTE, MPI_COMM_WORLD);
  CHECK(class_of(code) == (rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
  if (rank == 1 && last > 1)
    CHECK(in[in_at[last]] == last + 1 && in[in_at[last] + long_bytes - 1] == last + 1);

  code = MPI_Scatterv(out, out_bytes, out_at, MPI_BYTE, in, 4, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(class_of(code) == (rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));

  const int own = rank == 1 ? bytes : rank == last ? long_bytes : 4;
  for (int other = 0, received = 0; other < size; ++other) {
    in_bytes[other] = other == last && last > 1 ? long_bytes : 4;
    in_at[other] = received;
    received += in_bytes[other];
  }
  memset(out, rank + 1, (size_t)own);
  code = MPI_Gatherv(out, own, MPI_BYTE, in, in_bytes, in_at, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(class_of(code) == (rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
  if (rank == 0 && last > 1)
    CHECK(in[in_at[last]] == last + 1 && in[in_at[last] + long_bytes - 1] == last + 1);
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size > 1 && size <= most_ranks);
  const size_t space = (size_t)size * 64 + 2 * long_bytes;
  out = malloc(space);
  in = malloc(space);
  CHECK(out != NULL && in != NULL);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  send_too_much(8);
  send_too_much(long_bytes);
  free(out);
  free(in);
  OK(MPI_Finalize());
  return 0;
}
