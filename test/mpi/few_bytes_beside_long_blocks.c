// Blocks of a few bytes, of none, with gaps and of hundreds of KiB in one call: each rank decides by its own blocks how it takes
// part, so ranks that need no messages receive those of others. A block that is too long is an error at its receiver only.
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { long_bytes = 300000, most_ranks = 16 };

static int rank, size;
static unsigned char *out, *in;
static int out_bytes[most_ranks], in_bytes[most_ranks], out_at[most_ranks], in_at[most_ranks];

/// The bytes of a block in this call. In every third call all are short, in every fourth one is long.
static int bytes_of(int call, int from, int to) {
  if (call % 4 == 3 && from == call / 4 % size && to == (call / 4 / size) % size) return long_bytes;
  return call % 3 == 2 ? (from + to) % 2 : (from * 7 + to * 5 + call) % 23;
}

static unsigned char byte_at(int call, int from, int to, int i) {
  return (unsigned char)(call * 31 + from * 7 + to * 3 + i);
}

static void plan(int call) {
  for (int other = 0, sent = 0, received = 0; other < size; ++other) {
    out_bytes[other] = bytes_of(call, rank, other);
    in_bytes[other] = bytes_of(call, other, rank);
    out_at[other] = sent;
    in_at[other] = received;
    for (int i = 0; i < out_bytes[other]; ++i) out[sent + i] = byte_at(call, rank, other, i);
    sent += out_bytes[other];
    received += in_bytes[other];
  }
  memset(in, 0xee, (size_t)size * 64 + 2 * long_bytes);
}

static void check_block(int call, int from, int to, const unsigned char* at) {
  for (int i = 0; i < bytes_of(call, from, to); ++i) CHECK(at[i] == byte_at(call, from, to, i));
}

static void exchange(int call) {
  plan(call);
  OK(MPI_Alltoallv(out, out_bytes, out_at, MPI_BYTE, in, in_bytes, in_at, MPI_BYTE, MPI_COMM_WORLD));
  for (int from = 0; from < size; ++from) check_block(call, from, rank, in + in_at[from]);

  // Every second block of another datatype that is a byte.
  MPI_Datatype single, types_out[most_ranks], types_in[most_ranks];
  OK(MPI_Type_contiguous(1, MPI_BYTE, &single));
  OK(MPI_Type_commit(&single));
  for (int other = 0; other < size; ++other) {
    types_out[other] = other % 2 == 0 ? MPI_BYTE : single;
    types_in[other] = MPI_BYTE;
  }
  plan(call);
  OK(MPI_Alltoallw(out, out_bytes, out_at, types_out, in, in_bytes, in_at, types_in, MPI_COMM_WORLD));
  for (int from = 0; from < size; ++from) check_block(call, from, rank, in + in_at[from]);
  OK(MPI_Type_free(&single));

  const int root = call % size;
  plan(call);
  OK(MPI_Gatherv(out + out_at[root], out_bytes[root], MPI_BYTE, in, in_bytes, in_at, MPI_BYTE, root,
                 MPI_COMM_WORLD));
  for (int from = 0; rank == root && from < size; ++from) check_block(call, from, rank, in + in_at[from]);

  plan(call);
  OK(MPI_Scatterv(out, out_bytes, out_at, MPI_BYTE, in, in_bytes[root], MPI_BYTE, root, MPI_COMM_WORLD));
  check_block(call, root, rank, in);

  // Elements with a gap behind each, at the root and at every second rank.
  MPI_Datatype spread;
  OK(MPI_Type_create_resized(MPI_BYTE, 0, 2, &spread));
  OK(MPI_Type_commit(&spread));
  unsigned char few = (unsigned char)(rank + call), spread_out[2 * most_ranks];
  int ones[most_ranks], steps[most_ranks];
  for (int other = 0; other < size; ++other) {
    ones[other] = 1;
    steps[other] = other;
  }
  memset(spread_out, 0xee, sizeof spread_out);
  OK(MPI_Gatherv(&few, 1, rank % 2 == 0 ? MPI_BYTE : spread, spread_out, ones, steps, spread, root,
                 MPI_COMM_WORLD));
  for (int from = 0; rank == root && from < size; ++from) {
    CHECK(spread_out[2 * from] == (unsigned char)(from + call));
    CHECK(spread_out[2 * from + 1] == 0xee);
  }
  OK(MPI_Type_free(&spread));
}

/// Rank 0's block for rank 1 is longer than rank 1 says; all others are right.
static void send_too_much(int bytes) {
  for (int other = 0; other < size; ++other) {
    out_bytes[other] = in_bytes[other] = 4;
    out_at[other] = in_at[other] = 4 * other;
  }
  int at_root = in_bytes[0];
  if (rank == 0) {
    out_bytes[1] = bytes;
    at_root = 4;
  }
  const int code = MPI_Scatterv(out, out_bytes, out_at, MPI_BYTE, in, at_root, MPI_BYTE, 0, MPI_COMM_WORLD);
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  CHECK(error_class == (rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size <= most_ranks);
  const size_t space = (size_t)size * 64 + 2 * long_bytes;
  out = malloc(space);
  in = malloc(space);
  CHECK(out != NULL && in != NULL);
  for (int call = 0; call < 8 * size * size; ++call) exchange(call);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (size > 1) {
    send_too_much(8);
    send_too_much(long_bytes);
  }
  free(out);
  free(in);
  OK(MPI_Finalize());
  return 0;
}
