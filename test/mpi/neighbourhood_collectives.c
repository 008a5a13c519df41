// Every neighbourhood collective in every form, on every kind of topology: each transfers the same bytes as
// plain messages along the same edges and changes no others.
#include "neighbourhoods.h"

#include <string.h>

enum { allgather, allgatherv, alltoall, alltoallv, alltoallw, collectives };
enum { blocking, nonblocking, persistent, large = 3, forms = 6 }; // large + form: with MPI_Count

static const char* const collective_names[] = {"allgather", "allgatherv", "alltoall", "alltoallv",
                                               "alltoallw"};

#define THREE_FORMS(from, name, suffix, ...)                                                                 \
  case (from) + blocking: OK(MPI_Neighbor_##name##suffix(__VA_ARGS__, comm)); return;                        \
  case (from) + nonblocking: OK(MPI_Ineighbor_##name##suffix(__VA_ARGS__, comm, request)); return;           \
  case (from) + persistent:                                                                                  \
    OK(MPI_Neighbor_##name##_init##suffix(__VA_ARGS__, comm, MPI_INFO_NULL, request));                       \
    return;

/// Calls the collective; `request` is set by the forms that have one.
static void call(int collective, int form, const struct side* out, const struct side* in, MPI_Comm comm,
                 MPI_Request* request) {
  const int n = out->counts[0], m = in->counts[0];
  switch (collective * forms + form) {
    THREE_FORMS(allgather * forms, allgather, , out->at, n, out->types[0], in->at, m, in->types[0])
    THREE_FORMS(allgather * forms + large, allgather, _c, out->at, n, out->types[0], in->at, m, in->types[0])
    THREE_FORMS(allgatherv * forms, allgatherv, , out->at, n, out->types[0], in->at, in->counts,
                in->displacements, in->types[0])
    THREE_FORMS(allgatherv * forms + large, allgatherv, _c, out->at, n, out->types[0], in->at,
                in->large_counts, in->large_displacements, in->types[0])
    THREE_FORMS(alltoall * forms, alltoall, , out->at, n, out->types[0], in->at, m, in->types[0])
    THREE_FORMS(alltoall * forms + large, alltoall, _c, out->at, n, out->types[0], in->at, m, in->types[0])
    THREE_FORMS(alltoallv * forms, alltoallv, , out->at, out->counts, out->displacements, out->types[0],
                in->at, in->counts, in->displacements, in->types[0])
    THREE_FORMS(alltoallv * forms + large, alltoallv, _c, out->at, out->large_counts,
                out->large_displacements, out->types[0], in->at, in->large_counts, in->large_displacements,
                in->types[0])
    THREE_FORMS(alltoallw * forms, alltoallw, , out->at, out->counts, out->places, out->types, in->at,
                in->counts, in->places, in->types)
    THREE_FORMS(alltoallw * forms + large, alltoallw, _c, out->at, out->large_counts, out->places, out->types,
                in->at, in->large_counts, in->places, in->types)
  default: CHECK(0);
  }
}

static MPI_Datatype types[3]; // of one int each: contiguous, with a gap behind it, with gaps around it
static int rank;

static void make_types(void) {
  int one = 1, four = 4;
  MPI_Datatype moved;
  types[0] = MPI_INT;
  OK(MPI_Type_create_resized(MPI_INT, 0, 8, &types[1]));
  OK(MPI_Type_indexed(1, &one, &four, MPI_INT, &moved));
  OK(MPI_Type_create_resized(moved, 12, 12, &types[2]));
  OK(MPI_Type_commit(&types[1]));
  OK(MPI_Type_commit(&types[2]));
  OK(MPI_Type_free(&moved));
}

/// Lays out blocks of these lengths; in the v and w forms the last block comes first, with gaps between
/// blocks. Returns the size of the buffer in bytes, with space behind the last block.
static size_t lay_out(struct side* side, int collective, const int* lengths, int n, int mix) {
  const int regular = collective == allgather || collective == alltoall;
  MPI_Aint elements = regular ? 0 : 1, bytes = elements * 12;
  side->n = n;
  for (int k = 0; k < n; ++k) {
    const int i = regular ? k : n - 1 - k;
    MPI_Datatype type = side->types[i] = types[(mix + (collective == alltoallw ? i : 0)) % 3];
    MPI_Aint lower, extent;
    OK(MPI_Type_get_extent(type, &lower, &extent));
    side->counts[i] = lengths[i];
    side->large_counts[i] = lengths[i];
    side->displacements[i] = (int)elements;
    side->large_displacements[i] = elements;
    side->places[i] = collective == alltoallw ? bytes : elements * extent;
    elements += lengths[i] + (regular ? 0 : 2);
    bytes += (lengths[i] + 2) * extent;
  }
  return (size_t)(elements + 4) * 12 + (size_t)bytes;
}

/// Each process chooses the lengths of the blocks that it sends and tells them to its neighbours.
static void choose_lengths(MPI_Comm comm, const struct neighbours* with, int collective, int length,
                           int* leaving, int* arriving) {
  struct side out = {.at = (char*)leaving}, in = {.at = (char*)arriving};
  for (int i = 0; i < most; ++i) {
    leaving[i] = length;
    if (collective == allgatherv) leaving[i] = length * (rank % 3);
    if (collective == alltoallv || collective == alltoallw) leaving[i] = length * ((rank + i) % 3) + i % 2;
    arriving[i] = length; // stays so if there is no such neighbour
    out.counts[i] = in.counts[i] = 1;
    out.places[i] = in.places[i] = (MPI_Aint)sizeof(int) * i;
    out.types[i] = in.types[i] = MPI_INT;
  }
  exchange_plainly(comm, with, &out, &in);
}

static void fill(char* at, size_t bytes, int seed) {
  for (size_t i = 0; i < bytes; ++i) at[i] = (char)(i * 7 + i / 251 + (size_t)seed * 31);
}

static void compare(const char* got, const char* wanted, size_t bytes, int collective, int form, int which) {
  if (memcmp(got, wanted, bytes) == 0) return;
  size_t at = 0;
  while (got[at] == wanted[at]) ++at;
  fprintf(stderr, "rank %d: %s, form %d, topology %d: byte %zu of %zu is wrong\n", rank,
          collective_names[collective], form, which, at, bytes);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// One collective in all forms; a persistent one is started three times, with new data.
static void check_forms(MPI_Comm comm, const struct neighbours* with, int collective, int length, int which) {
  static int leaving[most], arriving[most];
  static struct side out, in, plain_out;
  choose_lengths(comm, with, collective, length, leaving, arriving);
  for (int mix = 0; mix < (length > 1000 ? 1 : 3); ++mix) {
    const int sends_one = collective == allgather || collective == allgatherv;
    memset(&out, 0, sizeof out);
    memset(&in, 0, sizeof in);
    out.types[0] = in.types[0] = MPI_INT; // set even if there are no neighbours
    size_t out_bytes =
        lay_out(&out, sends_one ? allgather : collective, leaving, sends_one ? 1 : with->out, mix);
    size_t in_bytes = lay_out(&in, collective, arriving, with->in, rank + mix + 1);
    char *wanted = malloc(in_bytes), *got = malloc(in_bytes);
    out.at = malloc(out_bytes);
    plain_out = out;
    for (int i = 1; sends_one && i < with->out; ++i) {
      plain_out.counts[i] = out.counts[0];
      plain_out.types[i] = out.types[0];
    }
    for (int form = 0; form < forms; ++form) {
      MPI_Request request = MPI_REQUEST_NULL;
      const int times = form % large == persistent ? 3 : 1;
      for (int time = 0; time < times; ++time) {
        fill(out.at, out_bytes, 100 * rank + 10 * form + time);
        memset(wanted, 0x5a, in_bytes);
        in.at = wanted;
        exchange_plainly(comm, with, &plain_out, &in);
        memset(got, 0x5a, in_bytes);
        in.at = got;
        if (time == 0) call(collective, form, &out, &in, comm, &request);
        CHECK((request == MPI_REQUEST_NULL) == (form % large == blocking));
        if (form % large == persistent) OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        compare(got, wanted, in_bytes, collective, form, which);
      }
      if (form % large == persistent) OK(MPI_Request_free(&request));
    }
    free(out.at);
    free(wanted);
    free(got);
  }
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  make_types();
  // Empty blocks, short blocks, and blocks that are sent by rendezvous.
  static const int lengths[] = {0, 1, 50, 20000};
  for (int which = 0; which < topologies; ++which) {
    MPI_Comm comm = make_topology(which);
    if (comm == MPI_COMM_NULL) continue;
    static struct neighbours with;
    find_neighbours(comm, &with);
    for (int collective = 0; collective < collectives; ++collective)
      for (int l = 0; l < 4; ++l)
        if (lengths[l] < 1000 || which % 3 == 2) check_forms(comm, &with, collective, lengths[l], which);
    OK(MPI_Comm_free(&comm));
  }
  for (int i = 1; i < 3; ++i) OK(MPI_Type_free(&types[i]));
  OK(MPI_Finalize());
  return 0;
}
