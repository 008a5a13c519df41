// The collectives as the benchmarks execute them: what a rank writes before the call, the call in its three forms,
// and what a rank reads after it. The root is rank 0, and the bytes of a barrier do not matter.
#pragma once

#include "mpi_measure.h"

struct operands {
  struct world world;
  unsigned char *out, *in;
  size_t bytes;         // of each rank's contribution, or to each rank
  unsigned char number; // what this repetition writes into each line
  bool right;           // Has all data that was read been right?
};

typedef void operation(struct operands*);

struct collective {
  const char* name;
  operation *write, *call;
  void (*start)(struct operands*, MPI_Request*);   // the nonblocking form
  void (*prepare)(struct operands*, MPI_Request*); // the persistent form
  operation* read;
};

/// Buffers for `bytes` from or to each rank.
static inline struct operands new_operands(struct world world, size_t bytes) {
  size_t all = bytes * (size_t)world.size;
  return (struct operands){.world = world, .out = new_buffer(all), .in = new_buffer(all), .right = true};
}

// ---- what is written and read: one byte of every line ----

static inline void write_nothing(struct operands* my) { (void)my; }
static inline void read_nothing(struct operands* my) { (void)my; }

static inline void write_block(struct operands* my) { rewrite_lines(my->out, my->bytes, my->number); }
static inline void read_block(struct operands* my) { my->right &= read_lines(my->in, my->bytes, my->number); }

// A block for each rank, or one from each.
static inline void write_blocks(struct operands* my) {
  for (int rank = 0; rank < my->world.size; ++rank)
    rewrite_lines(my->out + (size_t)rank * my->bytes, my->bytes, my->number);
}
static inline void read_blocks(struct operands* my) {
  for (int rank = 0; rank < my->world.size; ++rank)
    my->right &= read_lines(my->in + (size_t)rank * my->bytes, my->bytes, my->number);
}

static inline void write_block_of_root(struct operands* my) {
  if (my->world.rank == 0) write_block(my);
}
static inline void write_blocks_of_root(struct operands* my) {
  if (my->world.rank == 0) write_blocks(my);
}
static inline void read_blocks_at_root(struct operands* my) {
  if (my->world.rank == 0) read_blocks(my);
}
static inline void read_block_elsewhere(struct operands* my) {
  if (my->world.rank != 0) read_block(my);
}

// A reduction delivers whole words only.
static inline void read_words(struct operands* my) {
  my->right &= read_lines(my->in, my->bytes / 4 * 4, my->number);
}
static inline void read_words_at_root(struct operands* my) {
  if (my->world.rank == 0) read_words(my);
}

// ---- the calls ----

static inline int count_of(const struct operands* my) { return (int)my->bytes; }
static inline int words_of(const struct operands* my) { return (int)(my->bytes / 4); }
static inline unsigned char* broadcast_buffer(struct operands* my) {
  return my->world.rank == 0 ? my->out : my->in;
}

/// Defines call_, start_ and prepare_<lower>.
#define COLLECTIVE(lower, upper, ...)                                                                        \
  static inline void call_##lower(struct operands* my) {                                                     \
    (void)my;                                                                                                \
    MPI_##upper(__VA_ARGS__);                                                                                \
  }                                                                                                          \
  static inline void start_##lower(struct operands* my, MPI_Request* request) {                              \
    (void)my;                                                                                                \
    MPI_I##lower(__VA_ARGS__, request);                                                                      \
  }                                                                                                          \
  static inline void prepare_##lower(struct operands* my, MPI_Request* request) {                            \
    (void)my;                                                                                                \
    MPI_##upper##_init(__VA_ARGS__, MPI_INFO_NULL, request);                                                 \
  }

COLLECTIVE(barrier, Barrier, MPI_COMM_WORLD)
COLLECTIVE(bcast, Bcast, broadcast_buffer(my), count_of(my), MPI_BYTE, 0, MPI_COMM_WORLD)
// The bitwise or of equal bytes is that byte: so the results of reductions can be checked as the others are.
COLLECTIVE(reduce, Reduce, my->out, my->in, words_of(my), MPI_INT32_T, MPI_BOR, 0, MPI_COMM_WORLD)
COLLECTIVE(allreduce, Allreduce, my->out, my->in, words_of(my), MPI_INT32_T, MPI_BOR, MPI_COMM_WORLD)
COLLECTIVE(allgather, Allgather, my->out, count_of(my), MPI_BYTE, my->in, count_of(my), MPI_BYTE,
           MPI_COMM_WORLD)
COLLECTIVE(alltoall, Alltoall, my->out, count_of(my), MPI_BYTE, my->in, count_of(my), MPI_BYTE,
           MPI_COMM_WORLD)
COLLECTIVE(gather, Gather, my->out, count_of(my), MPI_BYTE, my->in, count_of(my), MPI_BYTE, 0, MPI_COMM_WORLD)
COLLECTIVE(scatter, Scatter, my->out, count_of(my), MPI_BYTE, my->in, count_of(my), MPI_BYTE, 0,
           MPI_COMM_WORLD)
#undef COLLECTIVE

static const struct collective collectives[] = {
    {"barrier", write_nothing, call_barrier, start_barrier, prepare_barrier, read_nothing},
    {"broadcast", write_block_of_root, call_bcast, start_bcast, prepare_bcast, read_block_elsewhere},
    {"reduce", write_block, call_reduce, start_reduce, prepare_reduce, read_words_at_root},
    {"allreduce", write_block, call_allreduce, start_allreduce, prepare_allreduce, read_words},
    {"allgather", write_block, call_allgather, start_allgather, prepare_allgather, read_blocks},
    {"alltoall", write_blocks, call_alltoall, start_alltoall, prepare_alltoall, read_blocks},
    {"gather", write_block, call_gather, start_gather, prepare_gather, read_blocks_at_root},
    {"scatter", write_blocks_of_root, call_scatter, start_scatter, prepare_scatter, read_block},
};
enum { count_collectives = sizeof collectives / sizeof *collectives };

static inline bool has_sizes(const struct collective* collective) { return collective->call != call_barrier; }

static inline void execute(struct operands* my, operation* write, operation* call, operation* read) {
  ++my->number;
  write(my);
  call(my);
  read(my);
}
