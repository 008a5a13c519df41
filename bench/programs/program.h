// How the programs of this folder are measured.
//
// The communication time of a program is what communication adds to its wall time: the wall time of the program, less
// the wall time of its computation alone. The time that ranks spend inside calls of MPI would not do: where ranks share
// a core, it includes the computation of the others. The computation alone is the same code without its calls of MPI.
// It works on as much data, which the last complete run has left in the buffers where the amount of work depends on it.
// Both times begin when the first rank begins and end when the last rank ends. So the communication time includes
// packing, copies, waiting, processor time that waiting ranks take from those that compute, and data that has left the
// cache; a load that is uneven over the whole run is not part of it.
//
// A program prints microseconds of one run, as the median over up to 15 pairs of such measurements:
//   communication   see above
//   whole           the wall time of the program
#pragma once

#include "mpi_measure.h"
#include <unistd.h>

struct program {
  const char* name;
  void (*run)(void* state, bool alone); // alone: without calls of MPI
  bool (*right)(void* state); // called on all ranks after a complete run: is the result of this rank right?
};

/// Waits for all ranks, and leaves the core to those that are not there yet: a library that spins in MPI_Barrier would
/// slow their computation down, and its communication would appear to be cheaper.
static inline void meet_asleep(void) {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int all_here = 0; !all_here;) {
    MPI_Test(&request, &all_here, MPI_STATUS_IGNORE);
    if (!all_here) usleep(100);
  }
}

/// Seconds of one run out of `count`, from the start of the first rank to the end of the last one. All ranks get the
/// same number.
static inline double time_of_run(const struct program* program, void* state, bool alone, long count) {
  double mine[2], latest[2]; // the ranks are on one machine, so they have one clock
  MPI_Barrier(MPI_COMM_WORLD);
  mine[0] = -now();
  for (long i = 0; i < count; ++i) program->run(state, alone);
  mine[1] = now();
  meet_asleep();
  MPI_Allreduce(mine, latest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (latest[0] + latest[1]) / (double)count;
}

static inline void measure_program(const struct program* program, void* state, struct world world,
                                   double budget) {
  double whole[most_batches], communication[most_batches], seconds;
  long count = 1;             // of runs in a measurement
  program->run(state, false); // connections are made, pages are touched
  while ((seconds = time_of_run(program, state, false, count) * (double)count) < budget / 2 / most_batches)
    count *= 2;
  int pairs = budget / 2 / seconds < fewest_batches ? fewest_batches : (int)(budget / 2 / seconds);
  for (int pair = 0; pair < pairs; ++pair) {
    whole[pair] = time_of_run(program, state, false, count);
    if (!program->right(state)) {
      fprintf(stderr, "bench: %s: rank %d has a wrong result\n", program->name, world.rank);
      MPI_Abort(MPI_COMM_WORLD, 4);
    }
    communication[pair] = whole[pair] - time_of_run(program, state, true, count);
  }
  if (world.rank != 0) return;
  print_value(program->name, "communication", 0, median(communication, pairs) * 1e6);
  print_value(program->name, "whole", 0, median(whole, pairs) * 1e6);
}
