// Blocks of a few bytes, of none, with gaps and of hundreds of KiB in one call: each rank decides by its own blocks how it takes
// part, so ranks that need no messages receive those of others.
#include "check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { long_bytes = 300000, most_ranks = 16 };

static int rank, size;
static unsigned char *out, *in;
static int out_bytes[most_ranks], in_bytes[most_ranks], out_at[most_ranks], in_at[most_ranks];

/// The bytes of a block in this call. In every third call blocks have one byte or none; in every fourth, one block of all is long.
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
  const bool has_gaps = rank == root || rank % 2 == 1;
  const int unit = has_gaps ? 2 : 1;
  MPI_Datatype type = has_gaps ? spread : MPI_BYTE;
  unsigned char mine[2 * most_ranks], got[2 * most_ranks];
  int ones[most_ranks], steps[most_ranks];
  for (int other = 0; other < size; ++other) {
    ones[other] = 1;
    steps[other] = other;
    mine[unit * other] = byte_at(call, rank, other, 0);
  }
  for (int way = 0; way < 3; ++way) {
    memset(got, 0xee, sizeof got);
    if (way == 0)
      OK(MPI_Alltoallv(mine, ones, steps, type, got, ones, steps, type, MPI_COMM_WORLD));
    else if (way == 1)
      OK(MPI_Gatherv(mine + unit * root, 1, type, got, ones, steps, type, root, MPI_COMM_WORLD));
    else
      OK(MPI_Scatterv(mine, ones, steps, type, got, 1, type, root, MPI_COMM_WORLD));
    for (int from = 0; from < size; ++from) {
      const bool arrives = way == 0 || (way == 1 && rank == root) || (way == 2 && from == root);
      const int place = way == 2 ? 0 : unit * from;
      if (!arrives) continue;
      CHECK(got[place] == byte_at(call, from, rank, 0));
      if (has_gaps) CHECK(got[place + 1] == 0xee);
    }
  }
  OK(MPI_Type_free(&spread));
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
  free(out);
  free(in);
  OK(MPI_Finalize());
  return 0;
}
