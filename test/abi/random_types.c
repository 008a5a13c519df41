// Builds random datatypes through the public functions and prints size, bounds, and a checksum of two packed
// elements of each. The same binary must print the same on another library.
//
//   random_types SEED NUMBER
//
// Omits cases in which MPICH differs (doc/adr/0003): types without data inside others, and structs whose
// members are all of one machine type, which MPICH does not pad.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

static int pick(int low, int high) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return low + (int)((state >> 33) % (uint64_t)(high - low + 1));
}

static MPI_Datatype basic(void) {
  // No long double: MPICH copies its value, so its padding bytes are undefined.
  static const MPI_Datatype choices[] = {MPI_CHAR,    MPI_SHORT,      MPI_INT,       MPI_DOUBLE,
                                         MPI_LOGICAL, MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_C_DOUBLE_COMPLEX,
                                         MPI_2INT,    MPI_WCHAR,      MPI_FLOAT_INT, MPI_INTEGER8,
                                         MPI_C_BOOL};
  MPI_Datatype type;
  MPI_Type_dup(choices[pick(0, 12)], &type);
  return type;
}

static MPI_Datatype structure(int depth);

static MPI_Datatype make(int depth) {
  int lengths[4], at[4], i, n = pick(1, 4), length = pick(1, 3);
  MPI_Aint bytes[4];
  if (depth == 0) return basic();
  int kind = pick(0, 10);
  if (kind <= 1) return structure(depth);
  MPI_Datatype old = make(depth - 1), made;
  for (i = 0; i < n; ++i) {
    lengths[i] = pick(1, 3);
    at[i] = pick(-4, 4);
    bytes[i] = pick(-60, 60);
  }
  switch (kind) {
  case 2: MPI_Type_contiguous(n, old, &made); break;
  case 3: MPI_Type_vector(n, length, pick(-4, 4), old, &made); break;
  case 4: MPI_Type_create_hvector(n, length, pick(-50, 50), old, &made); break;
  case 5: MPI_Type_indexed(n, lengths, at, old, &made); break;
  case 6: MPI_Type_create_hindexed(n, lengths, bytes, old, &made); break;
  case 7: MPI_Type_create_indexed_block(n, length, at, old, &made); break;
  case 8: {
    int sizes[2] = {pick(1, 4), pick(1, 4)}, sub[2], start[2];
    for (i = 0; i < 2; ++i) {
      sub[i] = pick(1, sizes[i]);
      start[i] = pick(0, sizes[i] - sub[i]);
    }
    MPI_Type_create_subarray(2, sizes, sub, start, pick(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &made);
    break;
  }
  case 9: {
    int sizes[2] = {pick(4, 6), pick(4, 6)}, grid[2] = {pick(1, 2), pick(1, 2)}, how[2], argument[2];
    for (i = 0; i < 2; ++i) {
      how[i] = pick(0, 1) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
      argument[i] = how[i] == MPI_DISTRIBUTE_CYCLIC ? pick(1, 2) : MPI_DISTRIBUTE_DFLT_DARG;
    }
    MPI_Type_create_darray(grid[0] * grid[1], pick(0, grid[0] * grid[1] - 1), 2, sizes, how, argument, grid,
                           pick(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &made);
    break;
  }
  default: {
    int lb = pick(-10, 10);
    MPI_Type_create_resized(old, lb, pick(1, 60), &made);
  }
  }
  MPI_Type_free(&old);
  return made;
}

static MPI_Datatype structure(int depth) {
  int n = pick(1, 3), lengths[4], i;
  MPI_Aint at[4];
  MPI_Datatype types[4], made;
  for (i = 0; i < n; ++i) {
    lengths[i] = pick(1, 2);
    at[i] = pick(-40, 120);
    types[i] = make(depth - 1);
  }
  lengths[n] = 1;
  at[n] = pick(-40, 120);
  types[n] = MPI_CHAR;
  MPI_Type_create_struct(n + 1, lengths, at, types, &made);
  for (i = 0; i < n; ++i) MPI_Type_free(&types[i]);
  return made;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  state = (uint64_t)atoi(argv[1]);
  for (int k = 0; k < atoi(argv[2]); ++k) {
    MPI_Datatype type = make(pick(1, 4));
    MPI_Count size, lb, extent, true_lb, true_extent, low, high;
    MPI_Type_commit(&type);
    MPI_Type_size_c(type, &size);
    MPI_Type_get_extent_c(type, &lb, &extent);
    MPI_Type_get_true_extent_c(type, &true_lb, &true_extent);
    low = true_lb < true_lb + extent ? true_lb : true_lb + extent;
    high = (true_lb < true_lb + extent ? true_lb + extent : true_lb) + true_extent;
    unsigned char *memory = malloc((size_t)(high - low)), *packed = malloc((size_t)(2 * size));
    for (MPI_Count i = 0; i < high - low; ++i) memory[i] = (unsigned char)(i * 131 + (i >> 8));
    MPI_Count position = 0;
    MPI_Pack_c((void*)((uintptr_t)memory - (uintptr_t)low), 2, type, packed, 2 * size, &position,
               MPI_COMM_SELF);
    uint64_t sum = 1469598103934665603u;
    for (MPI_Count i = 0; i < position; ++i) sum = (sum ^ packed[i]) * 1099511628211u;
    printf("%d: size %lld lb %lld extent %lld true %lld %lld packed %lld %016llx\n", k, (long long)size,
           (long long)lb, (long long)extent, (long long)true_lb, (long long)true_extent, (long long)position,
           (unsigned long long)sum);
    free(memory);
    free(packed);
    MPI_Type_free(&type);
  }
  MPI_Finalize();
  return 0;
}
