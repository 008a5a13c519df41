/* The smallest MPI program: every rank prints its number.
 *
 *     mpicc -O2 examples/hello.c -o build/hello
 *     mpiexec -n 4 build/hello
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, size, length;
  char machine[MPI_MAX_PROCESSOR_NAME];

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(machine, &length);
  printf("hello from rank %d of %d on %s\n", rank, size, machine);
  MPI_Finalize();
  return 0;
}
