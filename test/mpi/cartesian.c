// Cartesian topologies of one to three dimensions: coordinates, shifts, slices, halo exchange.
#include "check.h"

static int rank, size;

static void grid_of(int ndims) {
  int dims[3] = {0, 0, 0}, periods[3] = {1, 0, 1}, got[3], wraps[3], coords[3], kind, n, own;
  MPI_Comm grid;
  OK(MPI_Dims_create(size, ndims, dims));
  OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &grid));
  OK(MPI_Topo_test(grid, &kind));
  CHECK(kind == MPI_CART);
  OK(MPI_Cartdim_get(grid, &n));
  CHECK(n == ndims);
  OK(MPI_Comm_rank(grid, &own));
  OK(MPI_Cart_get(grid, ndims, got, wraps, coords));
  int back = -1, cells = 1;
  OK(MPI_Cart_rank(grid, coords, &back));
  CHECK(back == own);
  for (int i = 0; i < ndims; ++i) {
    CHECK(got[i] == dims[i] && wraps[i] == periods[i] && coords[i] >= 0 && coords[i] < dims[i]);
    cells *= dims[i];
  }
  CHECK(cells == size);
  for (int r = 0; r < size; ++r) {
    OK(MPI_Cart_coords(grid, r, ndims, coords));
    OK(MPI_Cart_rank(grid, coords, &back));
    CHECK(back == r);
  }
  for (int i = 0; i < ndims; ++i) {
    int before, after, value = own, from = -5;
    OK(MPI_Cart_shift(grid, i, 1, &before, &after));
    OK(MPI_Sendrecv(&value, 1, MPI_INT, after, 0, &from, 1, MPI_INT, before, 0, grid, MPI_STATUS_IGNORE));
    CHECK(from == (before == MPI_PROC_NULL ? -5 : before));
    OK(MPI_Cart_get(grid, ndims, got, wraps, coords));
    if (!periods[i]) CHECK((before == MPI_PROC_NULL) == (coords[i] == 0));
    int far_before, far_after;
    OK(MPI_Cart_shift(grid, i, -1 - dims[i], &far_before, &far_after));
    if (periods[i]) CHECK(far_before == after && far_after == before);
    if (!periods[i]) CHECK(far_before == MPI_PROC_NULL && far_after == MPI_PROC_NULL);
  }
  // All slices along one dimension.
  for (int i = 0; i < ndims; ++i) {
    int remain[3] = {0, 0, 0}, members, along;
    remain[i] = 1;
    MPI_Comm line;
    OK(MPI_Cart_sub(grid, remain, &line));
    OK(MPI_Comm_size(line, &members));
    OK(MPI_Comm_rank(line, &along));
    OK(MPI_Cart_get(grid, ndims, got, wraps, coords));
    CHECK(members == dims[i] && along == coords[i]);
    OK(MPI_Cart_get(line, 1, got, wraps, &n));
    CHECK(got[0] == dims[i] && wraps[0] == periods[i] && n == along);
    int sum = 0;
    OK(MPI_Allreduce(&along, &sum, 1, MPI_INT, MPI_SUM, line));
    CHECK(sum == members * (members - 1) / 2);
    OK(MPI_Comm_free(&line));
  }
  MPI_Comm copy, point;
  int none[3] = {0, 0, 0};
  OK(MPI_Comm_dup(grid, &copy));
  OK(MPI_Cartdim_get(copy, &n));
  CHECK(n == ndims);
  OK(MPI_Cart_sub(copy, none, &point));
  OK(MPI_Cartdim_get(point, &n));
  CHECK(n == 0);
  OK(MPI_Comm_size(point, &n));
  CHECK(n == 1);
  OK(MPI_Comm_free(&point));
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_free(&grid));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (int ndims = 1; ndims <= 3; ++ndims) grid_of(ndims);

  // A grid smaller than the communicator.
  int one = 1, none = 0, n, kind, dims[2] = {3, 0};
  MPI_Comm part, zero;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &none, 1, &part));
  CHECK((part == MPI_COMM_NULL) == (rank > 0));
  if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));
  OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &zero));
  CHECK((zero == MPI_COMM_NULL) == (rank > 0));
  if (zero != MPI_COMM_NULL) OK(MPI_Comm_free(&zero));
  int mapped;
  OK(MPI_Cart_map(MPI_COMM_WORLD, 1, &one, &none, &mapped));
  CHECK(mapped == (rank == 0 ? 0 : MPI_UNDEFINED));

  OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
  CHECK(kind == MPI_UNDEFINED);
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &n));
  int too_many = size + 1;
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &too_many, &none, 0, &part) != MPI_SUCCESS);
  FAILS(MPI_ERR_DIMS, MPI_Dims_create(7, 2, dims));
  OK(MPI_Finalize());
  return 0;
}
