// Many nonblocking and persistent neighbourhood collectives are under way on one communicator, together with
// other collectives and messages. They complete in a different order than they were started, and their
// datatypes are freed before that.
#include "neighbourhoods.h"

enum { many = 12, count = 500, large = 1 << 20 };

static int rank, size;

/// Element `at` of the data that a process sends in call number k.
static int value(int from, int k, int at) { return from * 10000000 + k * 3000 + at; }

/// A ring: down is number 0, up is number 1.
static MPI_Comm make_ring(void) {
  int periodic = 1;
  MPI_Comm ring;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
  return ring;
}

static void many_at_once(MPI_Comm ring) {
  static int out[many][2 * count], in[many][2 * count], gathered[many][2 * count];
  const int below = (rank + size - 1) % size, above = (rank + 1) % size;
  MPI_Request requests[2 * many + 1];
  for (int k = 0; k < many; ++k) {
    for (int i = 0; i < 2 * count; ++i) out[k][i] = value(rank, k, i);
    const int n = k % 3 == 0 ? count : k; // a mix of long and short blocks
    OK(MPI_Ineighbor_alltoall(out[k], n, MPI_INT, in[k], n, MPI_INT, ring, &requests[2 * k]));
    OK(MPI_Ineighbor_allgather(out[k], n, MPI_INT, gathered[k], n, MPI_INT, ring, &requests[2 * k + 1]));
  }
  OK(MPI_Ibarrier(ring, &requests[2 * many]));
  int token = rank, got = -1, sum = 0; // must not match any of their messages
  OK(MPI_Sendrecv(&token, 1, MPI_INT, above, 0, &got, 1, MPI_INT, below, 0, ring, MPI_STATUS_IGNORE));
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, ring));
  CHECK(got == below && sum == size * (size - 1) / 2);
  for (int k = 2 * many; k >= 0; --k) OK(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
  for (int k = 0; k < many; ++k) {
    const int n = k % 3 == 0 ? count : k;
    for (int i = 0; i < n; ++i) {
      CHECK(in[k][i] == value(below, k, n + i) && in[k][n + i] == value(above, k, i));
      CHECK(gathered[k][i] == value(below, k, i) && gathered[k][n + i] == value(above, k, i));
    }
  }
}

/// Processes wait for their calls in different orders and call nothing else meanwhile.
static void unlike_orders(MPI_Comm ring) {
  static int out[4][2 * count], in[4][2 * count];
  MPI_Request requests[4];
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 2 * count; ++i) out[k][i] = value(rank, k, i);
    OK(MPI_Ineighbor_alltoall(out[k], count, MPI_INT, in[k], count, MPI_INT, ring, &requests[k]));
  }
  for (int k = 0; k < 4; ++k) {
    int done = 0;
    while (!done) OK(MPI_Test(&requests[(k + rank) % 4], &done, MPI_STATUS_IGNORE));
  }
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < count; ++i) CHECK(in[k][i] == value((rank + size - 1) % size, k, count + i));
}

/// Once the call has returned, the arrays that it was given may change, and the types may be freed.
static void arrays_are_read_at_once(MPI_Comm ring) {
  static int out[4 * count], in[4 * count];
  int counts[2] = {count, count};
  MPI_Aint places[2] = {0, 2 * count * (MPI_Aint)sizeof(int)};
  MPI_Datatype every_other, types[2];
  OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other));
  OK(MPI_Type_commit(&every_other));
  types[0] = types[1] = every_other;
  for (int i = 0; i < 4 * count; ++i) {
    out[i] = value(rank, 0, i);
    in[i] = -1;
  }
  MPI_Request request;
  OK(MPI_Ineighbor_alltoallw(out, counts, places, types, in, counts, places, types, ring, &request));
  counts[0] = counts[1] = -5;
  places[0] = places[1] = 12345678;
  types[0] = types[1] = MPI_DATATYPE_NULL;
  OK(MPI_Type_free(&every_other));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < 2 * count; ++i) {
    CHECK(in[i] == (i % 2 == 0 ? value((rank + size - 1) % size, 0, 2 * count + i) : -1));
    CHECK(in[2 * count + i] == (i % 2 == 0 ? value((rank + 1) % size, 0, i) : -1));
  }
}

/// Two persistent calls are started together repeatedly, in alternating order.
static void persistent_ones(MPI_Comm ring) {
  int out[2][2], in[2][2] = {{0}};
  MPI_Request requests[2], swapped[2];
  for (int k = 0; k < 2; ++k)
    OK(MPI_Neighbor_alltoall_init(out[k], 1, MPI_INT, in[k], 1, MPI_INT, ring, MPI_INFO_NULL, &requests[k]));
  for (int round = 0; round < 50; ++round) {
    for (int k = 0; k < 2; ++k)
      for (int block = 0; block < 2; ++block) out[k][block] = value(rank, k, 2 * round + block);
    swapped[0] = requests[1];
    swapped[1] = requests[0];
    OK(MPI_Startall(2, round % 2 == 0 ? requests : swapped));
    int one = rank, sum = 0;
    if (round % 10 == 0) OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, ring));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int k = 0; k < 2; ++k) {
      CHECK(in[k][0] == value((rank + size - 1) % size, k, 2 * round + 1));
      CHECK(in[k][1] == value((rank + 1) % size, k, 2 * round));
    }
  }
  for (int k = 0; k < 2; ++k) OK(MPI_Request_free(&requests[k]));
}

/// The communicator is freed while its collective is under way.
static void large_blocks(MPI_Comm* ring) {
  int* out = malloc(2 * large * sizeof(int));
  int* in = malloc(3 * large * sizeof(int));
  for (int i = 0; i < 2 * large; ++i) out[i] = value(rank, 0, i);
  for (int i = 0; i < 3 * large; ++i) in[i] = -1;
  MPI_Request request;
  OK(MPI_Neighbor_alltoall(out, large, MPI_INT, in, large, MPI_INT, *ring));
  for (int i = 0; i < large; ++i) {
    CHECK(in[i] == value((rank + size - 1) % size, 0, large + i));
    CHECK(in[large + i] == value((rank + 1) % size, 0, i));
    in[i] = in[large + i] = -1;
  }
  OK(MPI_Ineighbor_allgather(out, large, MPI_INT, in, large, MPI_INT, *ring, &request));
  OK(MPI_Comm_free(ring));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < large; ++i) {
    CHECK(in[i] == value((rank + size - 1) % size, 0, i));
    CHECK(in[large + i] == value((rank + 1) % size, 0, i));
    CHECK(in[2 * large + i] == -1);
  }
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  MPI_Comm ring = make_ring();
  many_at_once(ring);
  unlike_orders(ring);
  arrays_are_read_at_once(ring);
  persistent_ones(ring);
  large_blocks(&ring);
  OK(MPI_Finalize());
  return 0;
}
