// Ranks that disagree on the size of a block, or call different collectives, get errors, and nobody waits for a message
// that does not come: blocks of 1 MiB are messages, short ones are not. Afterwards the communicator still works, unless
// its ranks have called different collectives.
#include "check.h"

#include <string.h>

enum { block = 1 << 20, most = 4 };

static int rank, size;
static char *out, *in;
static int out_counts[most], in_counts[most], places[most];

static int class_of(int code) {
  int class = 0;
  OK(MPI_Error_class(code, &class));
  return class;
}
static void set_counts(int value) {
  for (int i = 0; i < size; ++i) out_counts[i] = in_counts[i] = value;
}
static int finished(int started, MPI_Request* request) {
  return started == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : started;
}

/// Nonblocking if `later`.
static int gatherv(int bytes, MPI_Comm comm, int later) {
  MPI_Request request;
  if (!later) return MPI_Gatherv(out, bytes, MPI_BYTE, in, in_counts, places, MPI_BYTE, 0, comm);
  return finished(MPI_Igatherv(out, bytes, MPI_BYTE, in, in_counts, places, MPI_BYTE, 0, comm, &request),
                  &request);
}
static int scatterv(int bytes, MPI_Comm comm, int later) {
  MPI_Request request;
  if (!later) return MPI_Scatterv(out, out_counts, places, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm);
  return finished(MPI_Iscatterv(out, out_counts, places, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm, &request),
                  &request);
}
static int alltoallv(MPI_Comm comm, int later) {
  MPI_Request request;
  if (!later) return MPI_Alltoallv(out, out_counts, places, MPI_BYTE, in, in_counts, places, MPI_BYTE, comm);
  return finished(
      MPI_Ialltoallv(out, out_counts, places, MPI_BYTE, in, in_counts, places, MPI_BYTE, comm, &request),
      &request);
}

static void short_beside_long(MPI_Comm comm, int later) {
  set_counts(block);
  in_counts[1] = 8; // rank 1 sends 10
  const int code = gatherv(rank == 1 ? 10 : block, comm, later);
  CHECK(class_of(code) == (rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
}
static void long_into_short(MPI_Comm comm, int later) {
  set_counts(block);
  const int code = scatterv(rank == 1 ? 100 : block, comm, later);
  CHECK(class_of(code) == (rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
}
static void two_disagree_beside_long(MPI_Comm comm, int later) {
  set_counts(0);
  if (rank == 1) in_counts[2] = 50;
  if (rank == 2) out_counts[1] = 100;
  if (rank == 0) out_counts[1] = block;
  if (rank == 1) in_counts[0] = block;
  CHECK(class_of(alltoallv(comm, later)) == (rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
}
/// More room than data is not an error.
static void room_to_spare(MPI_Comm comm, int later) {
  set_counts(block);
  CHECK(class_of(gatherv(60000, comm, later)) == MPI_SUCCESS);
  CHECK(class_of(gatherv(70000, comm, later)) == MPI_SUCCESS);
}
/// A rank that only sends may be done before anybody notices: a root that waits takes messages early. Its next call fails.
static void different_calls(MPI_Comm comm, int later) {
  set_counts(block);
  const int code = rank == 2 ? MPI_Barrier(comm) : gatherv(block, comm, later), only_sends = rank % 2 == 1;
  CHECK(class_of(code) == MPI_ERR_OTHER || (only_sends && code == MPI_SUCCESS));
  CHECK(class_of(MPI_Barrier(comm)) == MPI_ERR_OTHER);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size >= 3 && size <= most);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  out = calloc((size_t)size, block);
  in = calloc((size_t)size, block);
  for (int i = 0; i < size; ++i) places[i] = i * block;
  for (int later = 0; later < 2; ++later) {
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Barrier(comm)); // makes the area
    void (*const cases[])(MPI_Comm, int) = {short_beside_long, long_into_short, two_disagree_beside_long,
                                            room_to_spare};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
      cases[i](comm, later);
      int one = 1, sum = 0;
      OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
      CHECK(sum == size);
    }
    different_calls(comm, later);
    OK(MPI_Comm_free(&comm));
  }
  free(out);
  free(in);
  OK(MPI_Finalize());
  return 0;
}
