// Broadcasts long vectors, or with "allreduce" adds one up. With NEAR_STATS=1 each rank then says how many bytes it has
// read of others, and from other NUMA nodes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { bytes = 1 << 20, roots = 2 };

// Returns the number of bytes that are wrong.
static int broadcast(unsigned char* vector, int rank, int size) {
  int wrong = 0;
  for (int i = 0; i < roots; ++i) {
    int root = i * (size - 1);
    for (int at = 0; at < bytes; ++at) vector[at] = (unsigned char)(rank == root ? at * 7 + root : 0);
    MPI_Bcast(vector, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int at = 0; at < bytes; ++at) wrong += vector[at] != (unsigned char)(at * 7 + root);
  }
  return wrong;
}

static int add_up(unsigned char* vector, int rank, int size) {
  for (int at = 0; at < bytes; ++at) vector[at] = (unsigned char)(at * 7 + rank);
  MPI_Allreduce(MPI_IN_PLACE, vector, bytes, MPI_UINT8_T, MPI_SUM, MPI_COMM_WORLD);
  int wrong = 0;
  for (int at = 0; at < bytes; ++at)
    wrong += vector[at] != (unsigned char)(size * at * 7 + size * (size - 1) / 2);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned char* vector = malloc(bytes);
  const int wrong = argc > 1 && strcmp(argv[1], "allreduce") == 0 ? add_up(vector, rank, size)
                                                                  : broadcast(vector, rank, size);
  free(vector);
  printf("rank %d: %d wrong bytes\n", rank, wrong);
  MPI_Finalize();
  return wrong != 0;
}
