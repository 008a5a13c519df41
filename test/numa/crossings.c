// Broadcasts long vectors. With NEAR_STATS=1 each rank then says how many bytes it has read from other NUMA nodes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { bytes = 1 << 20, roots = 2 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned char* vector = malloc(bytes);
  for (int i = 0; i < roots; ++i) {
    int root = i * (size - 1);
    for (int at = 0; at < bytes; ++at) vector[at] = (unsigned char)(rank == root ? at * 7 + root : 0);
    MPI_Bcast(vector, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int at = 0; at < bytes; ++at) wrong += vector[at] != (unsigned char)(at * 7 + root);
  }
  free(vector);
  printf("rank %d: %d wrong bytes\n", rank, wrong);
  MPI_Finalize();
  return wrong != 0;
}
