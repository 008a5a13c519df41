// Performance guidelines: no collective may be slower than a program that gets its result from other collectives
// (its mock-up), and none that is regular slower than its v form with equal counts. Microseconds of one call of the
// collective and of its mock-up, measured in fine alternation; with what a rank writes before and reads after it, which
// is the same for both.
//
//   guidelines SLOT VARIANTS SIZES         VARIANTS: of "collective" and "mock-up", those that are printed
//
// Source: Traeff, Gropp, Thakur, "Self-consistent MPI performance guidelines", IEEE TPDS 21 (5), 2010.
#include "alternation.h"

static unsigned char* spare;        // a block of each rank, for mock-ups that need a third buffer
static int *counts, *displacements; // of the v forms

// ---- collectives that no other benchmark calls ----

static void reduce_scatter_block(struct operands* my) {
  MPI_Reduce_scatter_block(my->out, my->in, words_of(my), MPI_INT32_T, MPI_BOR, MPI_COMM_WORLD);
}
static void scan(struct operands* my) {
  MPI_Scan(my->out, my->in, words_of(my), MPI_INT32_T, MPI_BOR, MPI_COMM_WORLD);
}

// ---- mock-ups ----

static void allreduce_of_4_bytes(struct operands* my) {
  MPI_Allreduce(my->out, my->in, 1, MPI_INT32_T, MPI_BOR, MPI_COMM_WORLD);
}
static void reduce_and_broadcast(struct operands* my) {
  call_reduce(my);
  MPI_Bcast(my->in, count_of(my), MPI_BYTE, 0, MPI_COMM_WORLD);
}
/// The part of `count` of which each rank has one; the last one may reach beyond the end.
static int part_of(const struct operands* my, int count) {
  return (count + my->world.size - 1) / my->world.size;
}
static void reduce_scatter_block_and_allgather(struct operands* my) {
  int part = part_of(my, words_of(my));
  MPI_Reduce_scatter_block(my->out, my->in + (size_t)my->world.rank * (size_t)part * 4, part, MPI_INT32_T,
                           MPI_BOR, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, my->in, part, MPI_INT32_T, MPI_COMM_WORLD);
}
static void scatter_and_allgather(struct operands* my) {
  int part = part_of(my, count_of(my));
  unsigned char* buffer = broadcast_buffer(my);
  void* own = my->world.rank == 0 ? MPI_IN_PLACE : buffer + (size_t)my->world.rank * (size_t)part;
  MPI_Scatter(buffer, part, MPI_BYTE, own, part, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, part, MPI_BYTE, MPI_COMM_WORLD);
}
static void broadcast_of_all(struct operands* my) {
  unsigned char* all = my->world.rank == 0 ? my->out : spare;
  MPI_Bcast(all, count_of(my) * my->world.size, MPI_BYTE, 0, MPI_COMM_WORLD);
  memcpy(my->in, all + (size_t)my->world.rank * my->bytes, my->bytes);
}
static void gather_and_broadcast(struct operands* my) {
  call_gather(my);
  MPI_Bcast(my->in, count_of(my) * my->world.size, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void alltoall_of_copies(struct operands* my) {
  for (int rank = 0; rank < my->world.size; ++rank)
    memcpy(spare + (size_t)rank * my->bytes, my->out, my->bytes);
  MPI_Alltoall(spare, count_of(my), MPI_BYTE, my->in, count_of(my), MPI_BYTE, MPI_COMM_WORLD);
}
static void reduce_and_scatter(struct operands* my) {
  int words = words_of(my);
  MPI_Reduce(my->out, spare, words * my->world.size, MPI_INT32_T, MPI_BOR, 0, MPI_COMM_WORLD);
  MPI_Scatter(spare, words, MPI_INT32_T, my->in, words, MPI_INT32_T, 0, MPI_COMM_WORLD);
}
static void exscan_and_local_reduction(struct operands* my) {
  MPI_Exscan(my->out, my->in, words_of(my), MPI_INT32_T, MPI_BOR, MPI_COMM_WORLD);
  if (my->world.rank == 0)
    memcpy(my->in, my->out, my->bytes);
  else
    MPI_Reduce_local(my->out, my->in, words_of(my), MPI_INT32_T, MPI_BOR);
}
static void gatherv(struct operands* my) {
  MPI_Gatherv(my->out, count_of(my), MPI_BYTE, my->in, counts, displacements, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void scatterv(struct operands* my) {
  MPI_Scatterv(my->out, counts, displacements, MPI_BYTE, my->in, count_of(my), MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void allgatherv(struct operands* my) {
  MPI_Allgatherv(my->out, count_of(my), MPI_BYTE, my->in, counts, displacements, MPI_BYTE, MPI_COMM_WORLD);
}
static void alltoallv(struct operands* my) {
  MPI_Alltoallv(my->out, counts, displacements, MPI_BYTE, my->in, counts, displacements, MPI_BYTE,
                MPI_COMM_WORLD);
}

static const struct guideline {
  const char* name;
  operation *write, *collective, *mock_up, *read;
} guidelines[] = {
    {"barrier<=allreduce", write_nothing, call_barrier, allreduce_of_4_bytes, read_nothing},
    {"allreduce<=reduce+broadcast", write_block, call_allreduce, reduce_and_broadcast, read_words},
    {"allreduce<=reduce_scatter_block+allgather", write_block, call_allreduce,
     reduce_scatter_block_and_allgather, read_words},
    {"reduce<=allreduce", write_block, call_reduce, call_allreduce, read_words_at_root},
    {"broadcast<=scatter+allgather", write_block_of_root, call_bcast, scatter_and_allgather,
     read_block_elsewhere},
    {"gather<=allgather", write_block, call_gather, call_allgather, read_blocks_at_root},
    {"scatter<=broadcast", write_blocks_of_root, call_scatter, broadcast_of_all, read_block},
    {"allgather<=gather+broadcast", write_block, call_allgather, gather_and_broadcast, read_blocks},
    {"allgather<=alltoall", write_block, call_allgather, alltoall_of_copies, read_blocks},
    {"reduce_scatter_block<=reduce+scatter", write_blocks, reduce_scatter_block, reduce_and_scatter,
     read_words},
    {"scan<=exscan+reduce_local", write_block, scan, exscan_and_local_reduction, read_words},
    {"gather<=gatherv", write_block, call_gather, gatherv, read_blocks_at_root},
    {"scatter<=scatterv", write_blocks_of_root, call_scatter, scatterv, read_block},
    {"allgather<=allgatherv", write_block, call_allgather, allgatherv, read_blocks},
    {"alltoall<=alltoallv", write_blocks, call_alltoall, alltoallv, read_blocks},
};
enum { count_guidelines = sizeof guidelines / sizeof *guidelines };

static void measure(struct operands* my, const struct guideline* guideline, size_t bytes,
                    const struct arguments* arguments) {
  struct way ways[2] = {
      {.write = guideline->write, .call = guideline->collective, .read = guideline->read, .bytes = bytes},
      {.write = guideline->write, .call = guideline->mock_up, .read = guideline->read, .bytes = bytes}};
  const char* const names[2] = {"collective", "mock-up"};
  for (int rank = 0; rank < my->world.size; ++rank) {
    counts[rank] = (int)bytes;
    displacements[rank] = rank * (int)bytes;
  }
  my->right = true;
  measure_in_alternation(my, ways, 2, arguments->budget);
  require_data(my->right, guideline->name, bytes);
  for (int i = 0; i < 2 && my->world.rank == 0; ++i)
    if (wants(arguments, names[i])) print_value(guideline->name, names[i], bytes, ways[i].seconds * 1e6);
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct operands my = new_operands(world, largest_size(&arguments));
  spare = new_buffer(largest_size(&arguments) * (size_t)world.size);
  counts = allocate((size_t)world.size, sizeof *counts);
  displacements = allocate((size_t)world.size, sizeof *displacements);
  measure(&my, &guidelines[0], 0, &arguments); // a barrier has no size
  for (int i = 1; i < count_guidelines; ++i)
    for (int at = 0; at < arguments.count; ++at)
      measure(&my, &guidelines[i], arguments.sizes[at], &arguments);
  MPI_Finalize();
  return 0;
}
