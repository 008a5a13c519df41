// Conjugate gradients: solves A x = b for a sparse, symmetric and positive definite matrix, whose entries are spread at
// random over the columns. Each rank has a block of rows. An iteration gathers the whole search direction on every rank
// (MPI_Allgatherv, with blocks of unequal lengths) and adds up two inner products (MPI_Allreduce). The number of
// iterations is fixed, as in NAS CG. Source: Hestenes, Stiefel, "Methods of conjugate gradients for solving linear
// systems", 1952.
//
// The residual b - A x is computed from the solution. Alone, each rank solves the system of its diagonal block.
#include "program.h"

enum { rows = 5003, edges = 6, iterations = 25 }; // edges: two entries each, on both sides of the diagonal

struct matrix { // a rank's rows
  int first, count;
  double* diagonal;
  int *end, *column; // the other entries of row i begin at end[i - 1] and end at end[i]
  double* entry;
};

struct solver {
  struct matrix matrix;
  int *counts, *firsts; // the rows of every rank
  double *x, *b, *residual, *product;
  double* direction; // for all rows; this rank's own begin at matrix.first
};

/// The sum over all ranks; alone, what this rank has.
static double add_up(double mine, bool alone) {
  double sum = mine;
  if (!alone) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

static double inner_product(const double* left, const double* right, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += left[i] * right[i];
  return sum;
}

/// to += factor * from
static void add_multiple(double* to, double factor, const double* from, int count) {
  for (int i = 0; i < count; ++i) to[i] += factor * from[i];
}

/// product = A direction
static void multiply(const struct matrix* matrix, const double* direction, double* product) {
  int at = 0;
  for (int i = 0; i < matrix->count; ++i) {
    double sum = matrix->diagonal[i] * direction[matrix->first + i];
    for (; at < matrix->end[i]; ++at) sum += matrix->entry[at] * direction[matrix->column[at]];
    product[i] = sum;
  }
}

/// Brings the blocks of all ranks together.
static void gather_direction(const struct solver* solver) {
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, solver->direction, solver->counts, solver->firsts,
                 MPI_DOUBLE, MPI_COMM_WORLD);
}

static void run(void* state, bool alone) {
  struct solver* solver = state;
  int count = solver->matrix.count;
  size_t bytes = (size_t)count * sizeof(double);
  double *x = solver->x, *residual = solver->residual, *product = solver->product;
  double* direction = solver->direction + solver->matrix.first;
  memset(x, 0, bytes);
  memset(solver->direction, 0, rows * sizeof(double)); // alone, the blocks of the others remain 0
  memcpy(residual, solver->b, bytes);
  memcpy(direction, solver->b, bytes);
  double square = add_up(inner_product(residual, residual, count), alone);
  for (int i = 0; i < iterations; ++i) {
    if (!alone) gather_direction(solver);
    multiply(&solver->matrix, solver->direction, product);
    double step = square / add_up(inner_product(direction, product, count), alone), before = square;
    add_multiple(x, step, direction, count);
    add_multiple(residual, -step, product, count);
    square = add_up(inner_product(residual, residual, count), alone);
    for (int at = 0; at < count; ++at) direction[at] = residual[at] + square / before * direction[at];
  }
}

static bool right(void* state) {
  struct solver* solver = state;
  int count = solver->matrix.count;
  memcpy(solver->direction + solver->matrix.first, solver->x, (size_t)count * sizeof(double));
  gather_direction(solver);
  multiply(&solver->matrix, solver->direction, solver->product);
  add_multiple(solver->product, -1, solver->b, count);
  double residual = add_up(inner_product(solver->product, solver->product, count), false);
  double scale = add_up(inner_product(solver->b, solver->b, count), false);
  return residual < 1e-14 * scale; // these are squares
}

/// Adds an entry if its row is one of this rank's; before there is room for entries, only counts it.
static void add_entry(struct matrix* matrix, int row, int column, double entry) {
  int mine = row - matrix->first;
  if (mine < 0 || mine >= matrix->count) return;
  int at = matrix->end[mine]++;
  if (!matrix->entry) return;
  matrix->column[at] = column;
  matrix->entry[at] = entry;
  matrix->diagonal[mine] -= entry;
}

/// A weighted Laplacian of a random graph.
static void add_entries(struct matrix* matrix) {
  for (int row = 0; row < rows; ++row)
    for (int edge = 0; edge < edges; ++edge) {
      uint64_t number = random_number((uint64_t)row * edges + (uint64_t)edge);
      int other = (int)(number % rows);
      double weight = (double)(1 + (number >> 62));
      if (other == row) continue;
      add_entry(matrix, row, other, -weight);
      add_entry(matrix, other, row, -weight);
    }
}

static struct matrix make_matrix(int first, int count) {
  struct matrix matrix = {.first = first, .count = count};
  matrix.diagonal = allocate((size_t)count, sizeof(double));
  matrix.end = allocate((size_t)count, sizeof(int));
  add_entries(&matrix);
  int entries = 0;
  for (int i = 0; i < count; ++i) {
    int of_row = matrix.end[i];
    matrix.end[i] = entries;
    entries += of_row;
    matrix.diagonal[i] = 1; // which makes the Laplacian definite
  }
  matrix.column = allocate((size_t)entries, sizeof(int));
  matrix.entry = allocate((size_t)entries, sizeof(double));
  add_entries(&matrix);
  return matrix;
}

static double* new_vector(int count) { return allocate((size_t)count, sizeof(double)); }

static void set_up(struct solver* solver, struct world world) {
  solver->counts = allocate((size_t)world.size, sizeof(int));
  solver->firsts = allocate((size_t)world.size, sizeof(int));
  for (int rank = 0; rank < world.size; ++rank) {
    solver->firsts[rank] = rows * rank / world.size;
    solver->counts[rank] = rows * (rank + 1) / world.size - solver->firsts[rank];
  }
  int first = solver->firsts[world.rank], count = solver->counts[world.rank];
  solver->matrix = make_matrix(first, count);
  solver->direction = new_vector(rows);
  solver->x = new_vector(count);
  solver->b = new_vector(count);
  solver->residual = new_vector(count);
  solver->product = new_vector(count);
  for (int i = 0; i < count; ++i) solver->b[i] = 1 + (first + i) % 5;
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct program program = {"cg", run, right};
  struct solver solver;
  set_up(&solver, world);
  measure_program(&program, &solver, world, arguments.budget);
  MPI_Finalize();
  return 0;
}
