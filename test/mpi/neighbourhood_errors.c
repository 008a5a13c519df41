// Wrong arguments of neighbourhood collectives raise the error classes of the standard. With an argument, the
// program makes one mistake, which ends the job with one readable line.
#include "check.h"

#include <string.h>

static int rank, size, a[64], b[64], ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, steps[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static MPI_Aint places[8] = {0, 4, 8, 12, 16, 20, 24, 28};
static MPI_Datatype types[8];
static MPI_Request request = MPI_REQUEST_NULL;

/// Every collective, and each of the three forms, on a communicator without a topology.
static void no_topology(MPI_Comm comm) {
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(a, 1, MPI_INT, b, 1, MPI_INT, comm));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgatherv(a, 1, MPI_INT, b, ones, steps, MPI_INT, comm));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT, comm));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoallv(a, ones, steps, MPI_INT, b, ones, steps, MPI_INT, comm));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoallw(a, ones, places, types, b, ones, places, types, comm));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Ineighbor_allgather(a, 1, MPI_INT, b, 1, MPI_INT, comm, &request));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoallv_init(a, ones, steps, MPI_INT, b, ones, steps, MPI_INT, comm,
                                                      MPI_INFO_NULL, &request));
  CHECK(request == MPI_REQUEST_NULL);
}

static MPI_Comm make_intercommunicator(void) {
  MPI_Comm half, inter;
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
  OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter));
  OK(MPI_Comm_free(&half));
  return inter;
}

static void wrong_arguments(MPI_Comm ring) {
  // The standard gives MPI_IN_PLACE no meaning here.
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, ring));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, ring));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, ring));
  FAILS(MPI_ERR_BUFFER,
        MPI_Neighbor_alltoallv(MPI_IN_PLACE, ones, steps, MPI_INT, b, ones, steps, MPI_INT, ring));
  FAILS(MPI_ERR_BUFFER,
        MPI_Ineighbor_alltoallw(MPI_IN_PLACE, ones, places, types, b, ones, places, types, ring, &request));
  // One buffer for both sides.
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_allgather(a + 1, 1, MPI_INT, a, 1, MPI_INT, ring));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_allgatherv(a, 1, MPI_INT, a, ones, steps, MPI_INT, ring));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(a, 1, MPI_INT, a, 1, MPI_INT, ring));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoallv(a, ones, steps, MPI_INT, a, ones, steps, MPI_INT, ring));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoallw_init(a, ones, places, types, a, ones, places, types, ring,
                                                    MPI_INFO_NULL, &request));
  // Arrays have one element for each neighbour: the third one is not read.
  int negative[8] = {1, -1}, behind[8] = {1, 1, -1};
  MPI_Datatype nothing[8] = {MPI_INT, MPI_DATATYPE_NULL};
  FAILS(MPI_ERR_COUNT, MPI_Neighbor_alltoallv(a, negative, steps, MPI_INT, b, ones, steps, MPI_INT, ring));
  FAILS(MPI_ERR_COUNT, MPI_Neighbor_allgatherv(a, 1, MPI_INT, b, negative, steps, MPI_INT, ring));
  FAILS(MPI_ERR_TYPE, MPI_Neighbor_alltoallw(a, ones, places, nothing, b, ones, places, types, ring));
  FAILS(MPI_ERR_ARG, MPI_Neighbor_alltoallv(a, ones, NULL, MPI_INT, b, ones, steps, MPI_INT, ring));
  CHECK(request == MPI_REQUEST_NULL);
  OK(MPI_Neighbor_alltoallv(a, behind, steps, MPI_INT, b, behind, steps, MPI_INT, ring));
}

/// Send and receive blocks may lie in one array if they do not overlap: this is how halos are exchanged.
static void halos_in_one_array(MPI_Comm ring) {
  int row[4] = {-1, 2 * rank, 2 * rank + 1, -1}, inner[2] = {1, 2}, outer[2] = {0, 3};
  OK(MPI_Neighbor_alltoallv(row, ones, inner, MPI_INT, row, ones, outer, MPI_INT, ring));
  CHECK(row[0] == (2 * rank + 2 * size - 1) % (2 * size) && row[3] == (2 * rank + 2) % (2 * size));
}

/// Blocks of neighbours that do not exist are not accessed, so they may overlap.
static void blocks_of_nobody(void) {
  int alone = 1, not_periodic = 0;
  MPI_Comm grid;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &alone, &not_periodic, 0, &grid));
  if (grid == MPI_COMM_NULL) return;
  a[0] = 7;
  OK(MPI_Neighbor_alltoall(a, 1, MPI_INT, a, 1, MPI_INT, grid));
  CHECK(a[0] == 7);
  OK(MPI_Comm_free(&grid));
}

static void make_mistake(const char* mistake, MPI_Comm ring) {
  MPI_Comm comm = strcmp(mistake, "between_groups") == 0 ? make_intercommunicator() : MPI_COMM_NULL;
  if (strcmp(mistake, "no_topology") == 0) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  if (comm != MPI_COMM_NULL) {
    MPI_Comm_set_name(comm, "ocean");
    MPI_Neighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT, comm);
  } else if (strcmp(mistake, "in_place") == 0) {
    MPI_Neighbor_alltoallv(MPI_IN_PLACE, ones, steps, MPI_INT, b, ones, steps, MPI_INT, ring);
  } else {
    MPI_Neighbor_alltoall(a, 1, MPI_INT, a, 1, MPI_INT, ring);
  }
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (int i = 0; i < 8; ++i) types[i] = MPI_INT;
  int periodic = 1;
  MPI_Comm ring;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
  if (argc > 1) make_mistake(argv[1], ring);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  no_topology(MPI_COMM_WORLD);
  if (size > 1) {
    MPI_Comm inter = make_intercommunicator();
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    no_topology(inter);
    OK(MPI_Comm_free(&inter));
  }
  OK(MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN));
  wrong_arguments(ring);
  halos_in_one_array(ring);
  blocks_of_nobody();
  OK(MPI_Comm_free(&ring));
  OK(MPI_Finalize());
  return 0;
}
