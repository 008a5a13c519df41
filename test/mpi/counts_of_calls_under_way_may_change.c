// Programs overwrite or free the counts, displacements and datatypes of a nonblocking collective once it has been
// started. MPI does not allow that before the operation completes (MPI 5.0, section 6.12), but bindings for other languages
// do it, so operations keep what they need.
#include "check.h"

#include <string.h>

enum { most_ranks = 8, longest = 20000, rounds = 6 };

static int counts[most_ranks], places[most_ranks], byte_places[most_ranks];
static MPI_Datatype types[most_ranks];
static int rank, size;

// Block `i` has (i + 1) * unit elements; returns their sum.
static int set(int unit) {
  int total = 0;
  for (int i = 0; i < size; ++i) {
    counts[i] = (i + 1) * unit;
    places[i] = total;
    byte_places[i] = total * (int)sizeof(int);
    types[i] = MPI_INT;
    total += counts[i];
  }
  return total;
}

static void forget(void) {
  memset(counts, 0x77, sizeof counts);
  memset(places, 0x77, sizeof places);
  memset(byte_places, 0x77, sizeof byte_places);
  memset(types, 0, sizeof types);
}

static int in[most_ranks * longest], out[most_ranks * longest];

static void fill(int total, int base) {
  for (int i = 0; i < total; ++i) {
    in[i] = base + i;
    out[i] = -1;
  }
}

static void wait_for(MPI_Request* request) {
  forget();
  OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

static void reduce_scatter(int unit) {
  const int total = set(unit);
  const int own = counts[rank], first = places[rank];
  fill(total, rank);
  MPI_Request request;
  OK(MPI_Ireduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
  wait_for(&request);
  for (int i = 0; i < own; ++i) CHECK(out[i] == size * (first + i) + size * (size - 1) / 2);
}

static void gatherv(int unit, int to_all) {
  const int total = set(unit), own = counts[rank], first = places[rank];
  fill(total, 0);
  MPI_Request request;
  if (to_all)
    OK(MPI_Iallgatherv(in + first, own, MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD, &request));
  else
    OK(MPI_Igatherv(in + first, own, MPI_INT, out, counts, places, MPI_INT, 0, MPI_COMM_WORLD, &request));
  wait_for(&request);
  for (int i = 0; (to_all || rank == 0) && i < total; ++i) CHECK(out[i] == i);
}

static void scatterv(int unit) {
  const int total = set(unit), own = counts[rank], first = places[rank];
  fill(total, 0);
  MPI_Request request;
  OK(MPI_Iscatterv(in, counts, places, MPI_INT, out, own, MPI_INT, 0, MPI_COMM_WORLD, &request));
  wait_for(&request);
  for (int i = 0; i < own; ++i) CHECK(out[i] == first + i);
}

// Every rank sends (i + 1) * unit elements to rank i, and receives (rank + 1) * unit from each.
static void alltoall(int unit, int with_types) {
  static int other_counts[most_ranks], other_places[most_ranks];
  const int own = (rank + 1) * unit, total = set(unit), first = places[rank];
  fill(total > own * size ? total : own * size, 1000000 * rank);
  for (int i = 0; i < size; ++i) {
    other_counts[i] = own;
    other_places[i] = i * own * (with_types ? (int)sizeof(int) : 1);
  }
  MPI_Request request;
  if (with_types)
    OK(MPI_Ialltoallw(in, counts, byte_places, types, out, other_counts, other_places, types, MPI_COMM_WORLD,
                      &request));
  else
    OK(MPI_Ialltoallv(in, counts, places, MPI_INT, out, other_counts, other_places, MPI_INT, MPI_COMM_WORLD,
                      &request));
  memset(other_counts, 0x77, sizeof other_counts);
  memset(other_places, 0x77, sizeof other_places);
  wait_for(&request);
  for (int i = 0; i < size * own; ++i) CHECK(out[i] == 1000000 * (i / own) + first + i % own);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  static const int units[] = {1, 40, longest / most_ranks};
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < 3; ++i) {
      reduce_scatter(units[i]);
      gatherv(units[i], 0);
      gatherv(units[i], 1);
      scatterv(units[i]);
      alltoall(units[i], 0);
      alltoall(units[i], 1);
    }
  OK(MPI_Finalize());
  return 0;
}
