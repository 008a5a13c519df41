// start_program COMMAND: every rank runs a command between MPI_Init and MPI_Finalize, which must succeed.
#include "check.h"

int main(int count, char** arguments) {
  OK(MPI_Init(&count, &arguments));
  CHECK(count == 2 && system(arguments[1]) == 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Finalize());
  return 0;
}
