// A stencil: explicit steps of the heat equation on a grid of three dimensions. Each rank has a block of the grid with
// a halo, a layer of its neighbours' points. Before a step the ranks exchange the faces of their blocks, all at the
// same time, with a datatype for the faces of each direction (the points of an x face are a row apart). Every few steps
// they agree on the largest change.
//
// Each rank compares its block with that of the same computation on the whole grid, bit for bit.
#include "program.h"
#include <stddef.h>

enum { dimensions = 3, points = 48, steps = 20, check_interval = 5 };

struct block {
  int extent[dimensions];       // x, y, z, without the halo
  ptrdiff_t stride[dimensions]; // from a point to the next one in this direction
  size_t bytes;                 // of a field, with the halo
  double *initial, *field, *next;
  double change; // the largest one of the last checked step
};

struct stencil {
  MPI_Comm grid;
  int below[dimensions], above[dimensions]; // the neighbours in each direction
  int start[dimensions];                    // of this rank's block in the grid
  MPI_Datatype face[dimensions];
  struct block mine, all;
};

static ptrdiff_t index_of(const struct block* block, int x, int y, int z) {
  return x * block->stride[0] + y * block->stride[1] + z * block->stride[2];
}

/// A block at `start` of the grid. Outside of the grid the temperature is always 0.
static struct block make_block(const int* start, const int* extent) {
  struct block block = {.extent = {extent[0], extent[1], extent[2]}};
  block.stride[0] = 1;
  block.stride[1] = extent[0] + 2;
  block.stride[2] = block.stride[1] * (extent[1] + 2);
  size_t count = (size_t)(block.stride[2] * (extent[2] + 2));
  block.bytes = count * sizeof(double);
  block.initial = allocate(count, sizeof(double));
  block.field = allocate(count, sizeof(double));
  block.next = allocate(count, sizeof(double));
  for (int z = 0; z < extent[2]; ++z)
    for (int y = 0; y < extent[1]; ++y)
      for (int x = 0; x < extent[0]; ++x) {
        int number = ((start[2] + z) * points + start[1] + y) * points + start[0] + x;
        block.initial[index_of(&block, x + 1, y + 1, z + 1)] =
            (double)(random_number((uint64_t)number) >> 40);
      }
  return block;
}

static void relax(const struct block* block) {
  ptrdiff_t row = block->stride[1], layer = block->stride[2];
  for (int z = 1; z <= block->extent[2]; ++z)
    for (int y = 1; y <= block->extent[1]; ++y) {
      const double* from = block->field + index_of(block, 1, y, z);
      double* to = block->next + index_of(block, 1, y, z);
      for (int x = 0; x < block->extent[0]; ++x) {
        double around =
            from[x - 1] + from[x + 1] + from[x - row] + from[x + row] + from[x - layer] + from[x + layer];
        to[x] = from[x] + 0.125 * (around - 6 * from[x]);
      }
    }
}

static double largest_change(const struct block* block) {
  double largest = 0;
  for (int z = 1; z <= block->extent[2]; ++z)
    for (int y = 1; y <= block->extent[1]; ++y)
      for (int x = 1; x <= block->extent[0]; ++x) {
        ptrdiff_t at = index_of(block, x, y, z);
        double change = block->field[at] - block->next[at];
        if (change < 0) change = -change;
        if (change > largest) largest = change;
      }
  return largest;
}

static void exchange_halos(const struct stencil* stencil) {
  enum { up, down };
  MPI_Request requests[4 * dimensions], *request = requests;
  const struct block* block = &stencil->mine;
  for (int i = 0; i < dimensions; ++i) {
    double* first = block->field + index_of(block, 1, 1, 1);
    double* last = first + (block->extent[i] - 1) * block->stride[i];
    MPI_Datatype face = stencil->face[i];
    MPI_Irecv(first - block->stride[i], 1, face, stencil->below[i], up, stencil->grid, request++);
    MPI_Irecv(last + block->stride[i], 1, face, stencil->above[i], down, stencil->grid, request++);
    MPI_Isend(first, 1, face, stencil->below[i], down, stencil->grid, request++);
    MPI_Isend(last, 1, face, stencil->above[i], up, stencil->grid, request++);
  }
  MPI_Waitall(4 * dimensions, requests, MPI_STATUSES_IGNORE);
}

/// With `stencil`, whose block it is; without, the block is computed alone.
static void advance(struct block* block, const struct stencil* stencil) {
  memcpy(block->field, block->initial, block->bytes);
  for (int step = 1; step <= steps; ++step) {
    if (stencil) exchange_halos(stencil);
    relax(block);
    double* last = block->field;
    block->field = block->next;
    block->next = last;
    if (step % check_interval != 0) continue;
    block->change = largest_change(block);
    if (stencil) MPI_Allreduce(MPI_IN_PLACE, &block->change, 1, MPI_DOUBLE, MPI_MAX, stencil->grid);
  }
}

static void run(void* state, bool alone) {
  struct stencil* stencil = state;
  advance(&stencil->mine, alone ? NULL : stencil);
}

static bool right(void* state) {
  const struct stencil* stencil = state;
  const struct block *mine = &stencil->mine, *all = &stencil->all;
  const int* start = stencil->start;
  bool equal = mine->change == all->change;
  for (int z = 1; z <= mine->extent[2]; ++z)
    for (int y = 1; y <= mine->extent[1]; ++y)
      equal &= memcmp(mine->field + index_of(mine, 1, y, z),
                      all->field + index_of(all, start[0] + 1, start[1] + y, start[2] + z),
                      (size_t)mine->extent[0] * sizeof(double)) == 0;
  return equal;
}

/// The points of a block that have one coordinate in common.
static MPI_Datatype make_face(const int* extent, int direction) {
  int sizes[dimensions], face[dimensions], zero[dimensions] = {0};
  for (int i = 0; i < dimensions; ++i) {
    sizes[i] = extent[i] + 2;
    face[i] = i == direction ? 1 : extent[i];
  }
  MPI_Datatype type;
  MPI_Type_create_subarray(dimensions, sizes, face, zero, MPI_ORDER_FORTRAN, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

static void set_up(struct stencil* stencil, struct world world) {
  int blocks[dimensions] = {0}, periodic[dimensions] = {0}, extent[dimensions], place[dimensions], rank;
  MPI_Dims_create(world.size, dimensions, blocks);
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, blocks, periodic, 1, &stencil->grid);
  MPI_Comm_rank(stencil->grid, &rank);
  MPI_Cart_coords(stencil->grid, rank, dimensions, place);
  for (int i = 0; i < dimensions; ++i) {
    extent[i] = points / blocks[i];
    stencil->start[i] = place[i] * extent[i];
    if (place[i] == blocks[i] - 1) extent[i] = points - stencil->start[i];
    MPI_Cart_shift(stencil->grid, i, 1, &stencil->below[i], &stencil->above[i]);
  }
  for (int i = 0; i < dimensions; ++i) stencil->face[i] = make_face(extent, i);
  stencil->mine = make_block(stencil->start, extent);
  stencil->all = make_block((int[]){0, 0, 0}, (int[]){points, points, points});
  advance(&stencil->all, NULL);
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct program program = {"stencil", run, right};
  struct stencil stencil;
  set_up(&stencil, world);
  measure_program(&program, &stencil, world, arguments.budget);
  for (int i = 0; i < dimensions; ++i) MPI_Type_free(&stencil.face[i]);
  MPI_Comm_free(&stencil.grid);
  MPI_Finalize();
  return 0;
}
