// The shortest program that needs every rank; bench/compare measures from before the launcher starts until it
// has ended.
#include "mpi_measure.h"

int main(int argc, char** argv) {
  print_library(init_mpi(&argc, &argv));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
