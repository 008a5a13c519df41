// Blocks that are further apart than an int can express, through the _c forms. Little of the address range is
// touched.
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const MPI_Aint apart = (MPI_Aint)3 << 30;
  enum { count = 5000 };
  char* all = mmap(NULL, (size_t)(apart * size), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(all != MAP_FAILED);
  MPI_Count counts[64];
  MPI_Aint at[64];
  char own[count];
  for (int i = 0; i < count; ++i) own[i] = (char)(rank * 3 + i);
  for (int r = 0; r < size; ++r) {
    counts[r] = count;
    at[r] = apart * r;
  }
  OK(MPI_Allgatherv_c(own, count, MPI_CHAR, all, counts, at, MPI_CHAR, MPI_COMM_WORLD));
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < count; ++i) CHECK(all[apart * r + i] == (char)(r * 3 + i));
  OK(MPI_Alltoallv_c(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, all, counts, at, MPI_CHAR, MPI_COMM_WORLD));
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < count; ++i) CHECK(all[apart * r + i] == (char)(rank * 3 + i));
  OK(MPI_Finalize());
  return 0;
}
