// A stencil in two dimensions: `stencil [shuffled] [grid | graph | adjacent | distributed] [kept | reordered]` exchanges halos in a
// topology of this kind, in the order of the processes or in the one that MPI prefers, and says how many bytes went to other machines
// and to other NUMA nodes, on the same machine or another one. Without the last argument: in the one order, then in the other.
#define _GNU_SOURCE // getcpu
#include "check.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>

enum { halo = 10000, rounds = 3, sides = 4 };

/// Where a process runs.
struct Place {
  char machine[MPI_MAX_PROCESSOR_NAME];
  unsigned node;
};

struct Stencil {
  int dims[2], ranks;
};

/// The neighbours of a rank, as the stencil has them: above, below, left, right. Returns their number.
static int neighbours_of(const struct Stencil* stencil, int rank, int* neighbours) {
  const int row = rank / stencil->dims[1], column = rank % stencil->dims[1];
  int count = 0;
  if (row > 0) neighbours[count++] = rank - stencil->dims[1];
  if (row + 1 < stencil->dims[0]) neighbours[count++] = rank + stencil->dims[1];
  if (column > 0) neighbours[count++] = rank - 1;
  if (column + 1 < stencil->dims[1]) neighbours[count++] = rank + 1;
  return count;
}

static MPI_Comm topology(MPI_Comm parent, const struct Stencil* stencil, const char* kind, int reorder) {
  int rank, none[2] = {0, 0}, neighbours[sides];
  OK(MPI_Comm_rank(parent, &rank));
  const int count = neighbours_of(stencil, rank, neighbours);
  MPI_Comm made;
  if (strcmp(kind, "grid") == 0) {
    OK(MPI_Cart_create(parent, 2, stencil->dims, none, reorder, &made));
  } else if (strcmp(kind, "graph") == 0) {
    int* index = malloc((size_t)stencil->ranks * sizeof(int));
    int* edges = malloc((size_t)stencil->ranks * sides * sizeof(int));
    for (int r = 0, all = 0; r < stencil->ranks; ++r)
      index[r] = all += neighbours_of(stencil, r, edges + all);
    OK(MPI_Graph_create(parent, stencil->ranks, index, edges, reorder, &made));
    free(index);
    free(edges);
  } else if (strcmp(kind, "adjacent") == 0) {
    OK(MPI_Dist_graph_create_adjacent(parent, count, neighbours, MPI_UNWEIGHTED, count, neighbours,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &made));
  } else {
    CHECK(strcmp(kind, "distributed") == 0);
    OK(MPI_Dist_graph_create(parent, 1, &rank, &count, neighbours, MPI_UNWEIGHTED, MPI_INFO_NULL, reorder,
                             &made));
  }
  return made;
}

static void fill(unsigned char* data, int from, int to, int round) {
  for (int i = 0; i < halo; ++i) data[i] = (unsigned char)(from * 31 + to * 7 + round + i);
}

static void exchange(MPI_Comm comm, const struct Stencil* stencil, const char* order) {
  int rank, neighbours[sides];
  OK(MPI_Comm_rank(comm, &rank));
  const int count = neighbours_of(stencil, rank, neighbours);
  struct Place own;
  memset(&own, 0, sizeof own);
  int length;
  unsigned processor;
  OK(MPI_Get_processor_name(own.machine, &length));
  CHECK(getcpu(&processor, &own.node) == 0);
  struct Place* all = malloc((size_t)stencil->ranks * sizeof own);
  OK(MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, comm));

  static unsigned char out[sides][halo], in[sides][halo], expected[halo];
  long sent[2] = {0, 0}; // to other machines, to other nodes here or there
  for (int round = 0; round < rounds; ++round) {
    MPI_Request requests[2 * sides];
    for (int i = 0; i < count; ++i) {
      OK(MPI_Irecv(in[i], halo, MPI_BYTE, neighbours[i], round, comm, &requests[2 * i]));
      fill(out[i], rank, neighbours[i], round);
      OK(MPI_Isend(out[i], halo, MPI_BYTE, neighbours[i], round, comm, &requests[2 * i + 1]));
      const struct Place* its = &all[neighbours[i]];
      const bool is_elsewhere = strcmp(its->machine, own.machine) != 0;
      sent[0] += is_elsewhere ? halo : 0;
      sent[1] += is_elsewhere || its->node != own.node ? halo : 0;
    }
    OK(MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; ++i) {
      fill(expected, neighbours[i], rank, round);
      CHECK(memcmp(in[i], expected, halo) == 0);
    }
  }
  free(all);
  OK(MPI_Allreduce(MPI_IN_PLACE, sent, 2, MPI_LONG, MPI_SUM, comm));
  if (rank == 0) printf("%s: %ld bytes between machines, %ld bytes between nodes\n", order, sent[0], sent[1]);
}

/// A key by which ranks are shuffled, the same in every run.
static int shuffled(unsigned rank) {
  unsigned key = (rank + 1) * 0x9e3779b1u;
  key = (key ^ key >> 15) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  return (int)((key ^ key >> 16) & 0x7fffffff);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  const char *kind = "grid", *order = "";
  bool is_shuffled = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "shuffled") == 0)
      is_shuffled = true;
    else if (strcmp(argv[i], "kept") == 0 || strcmp(argv[i], "reordered") == 0)
      order = argv[i];
    else
      kind = argv[i];
  }
  int rank;
  struct Stencil stencil = {{0, 0}, 0};
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &stencil.ranks));
  OK(MPI_Dims_create(stencil.ranks, 2, stencil.dims));
  MPI_Comm parent, made;
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, is_shuffled ? shuffled((unsigned)rank) : rank, &parent));
  for (int reorder = 0; reorder < 2; ++reorder) {
    const char* name = reorder ? "reordered" : "kept";
    if (*order != '\0' && strcmp(order, name) != 0) continue;
    made = topology(parent, &stencil, kind, reorder);
    exchange(made, &stencil, name);
    OK(MPI_Comm_free(&made));
  }
  OK(MPI_Comm_free(&parent));
  OK(MPI_Finalize());
  return 0;
}
