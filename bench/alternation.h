// Measures several operations, or several sizes of one, in fine alternation within one process: a block of calls of
// the first, a block of the second, and so on, many times. What slows the machine down for a while then slows down
// all of them, so their ratios can be compared with bounds that are close to 1.
#pragma once

#include "operations.h"

enum { most_blocks = 31 };

/// One of the operations that are compared.
struct way {
  operation *write, *call, *read;
  size_t bytes;
  long calls; // in a block
  int blocks;
  double seconds; // the result: one call, with the passes over the buffers
};

/// Seconds from the start of the first rank to the end of the last one. All ranks get the same number.
static inline double time_of_block(struct operands* my, const struct way* way) {
  double mine[2], latest[2]; // the ranks are on one machine, so they have one clock
  my->bytes = way->bytes;
  MPI_Barrier(MPI_COMM_WORLD);
  mine[0] = -now();
  for (long i = 0; i < way->calls; ++i) execute(my, way->write, way->call, way->read);
  mine[1] = now();
  MPI_Allreduce(mine, latest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return latest[0] + latest[1];
}

/// The time of a block that lasts as long as `enough`: the least of three, so that one which waited for a core does not
/// spoil the plan. One that is longer than the whole budget is not repeated: it has one call, and is hardly disturbed.
static inline double time_if_enough(struct operands* my, const struct way* way, double enough,
                                    double budget) {
  double seconds = time_of_block(my, way);
  for (int i = 1; i < 3 && seconds >= enough && (way->calls > 1 || seconds < budget); ++i) {
    double again = time_of_block(my, way);
    if (again < seconds) seconds = again;
  }
  return seconds;
}

/// Finds how many calls a block has and how many blocks there are, so that they together fill the budget; the blocks
/// that it takes are a warm-up. All ranks come to the same numbers. Blocks of different ways last equally long,
/// because the time in which the ranks leave the barrier is a part of each.
static inline void plan_blocks(struct operands* my, struct way* way, double budget) {
  double seconds, enough = budget / most_blocks;
  way->calls = 1;
  time_of_block(my, way); // connections are made, pages are touched
  while ((seconds = time_if_enough(my, way, enough, budget)) < enough) way->calls *= 2;
  double each = seconds / (double)way->calls;
  way->calls = each < enough ? (long)(enough / each) : 1;
  double all = budget / (each * (double)way->calls);
  way->blocks = all < fewest_batches ? fewest_batches : all > most_blocks ? most_blocks : (int)all;
}

/// Sets `seconds` of each way to the median over its blocks. `budget`: seconds that each may take, about.
///
/// It is the median also with more ranks than cores: the mean would count a block in which another process had a core
/// against one way only.
static inline void measure_in_alternation(struct operands* my, struct way* ways, int count, double budget) {
  double(*times)[most_blocks] = allocate((size_t)count, sizeof *times);
  for (int i = 0; i < count; ++i) plan_blocks(my, &ways[i], budget);
  for (int block = 0; block < most_blocks; ++block)
    for (int i = 0; i < count; ++i)
      if (block < ways[i].blocks) times[i][block] = time_of_block(my, &ways[i]) / (double)ways[i].calls;
  for (int i = 0; i < count; ++i) ways[i].seconds = median(times[i], ways[i].blocks);
  free(times);
}
