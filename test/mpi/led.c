// Collectives between machines: which ranks exchange messages with other machines, and how much. With NEAR_STATS=1 each rank says so
// itself; here each tells where it runs. The argument is the root of a broadcast, or "allreduce".
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 1 << 18 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* what = argc > 1 ? argv[1] : "0";
  int* vector = malloc(count * sizeof *vector);
  const int adds = strcmp(what, "allreduce") == 0, root = adds ? 0 : atoi(what);
  for (int i = 0; i < count; ++i) vector[i] = adds ? i * rank : rank == root ? i : -1;
  if (adds)
    MPI_Allreduce(MPI_IN_PLACE, vector, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  else
    MPI_Bcast(vector, count, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) wrong += vector[i] != (adds ? i * (size * (size - 1) / 2) : i);
  free(vector);
  unsigned cpu = 0, node = 0;
  getcpu(&cpu, &node);
  char name[MPI_MAX_PROCESSOR_NAME];
  int length;
  MPI_Get_processor_name(name, &length);
  printf("rank %d on node %u of %s: %d wrong elements\n", rank, node, name, wrong);
  MPI_Finalize();
  return wrong != 0;
}
