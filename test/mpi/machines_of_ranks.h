// For the programs of test/mpi whose results depend on which ranks share a machine.
#pragma once

#include "check.h"

#include <string.h>

/// Counts the ranks of MPI_COMM_WORLD among first, first + step, ... that run on the machine of this rank. Collective.
static inline int count_on_this_machine(int first, int step) {
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  int length, size, count = 0;
  OK(MPI_Get_processor_name(name, &length));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  char* names = malloc((size_t)size * sizeof name);
  CHECK(names != NULL);
  OK(MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, MPI_COMM_WORLD));
  for (int r = first; r < size; r += step)
    count += memcmp(names + (size_t)r * sizeof name, name, sizeof name) == 0;
  free(names);
  return count;
}

/// Whether MPI_COMM_WORLD has several machines. There each access of a window takes a round trip of two processes, a hundred times as
/// long as on one machine. Collective.
static inline int on_several_machines(void) {
  int size;
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return count_on_this_machine(0, 1) != size;
}
