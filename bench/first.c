// The cost of a pair's first messages: microseconds from the start of the first round trip between ranks 0 and 1
// until the 1st, 10th, 100th and 1000th has ended.
//
//   first SLOT VARIANTS SIZE
//
// One size in a process: a second one would find a pair that has exchanged messages before. Only MPI_Init and a
// barrier come first, as in most programs. The buffers' pages have been touched; a rank writes one byte of every
// line before it sends and reads one of every line after it has received, within the measured time.
#include "mpi_measure.h"

enum { most_bytes = 256 << 20 }; // one way: more round trips than that are left out

int main(int argc, char** argv) {
  struct world world = init_mpi(&argc, &argv);
  pin_to(core_of(world.rank)); // again, in case MPI_Init has bound the process elsewhere
  require_ranks(world, 2);
  struct arguments arguments = read_arguments(argc, argv);
  size_t bytes = arguments.sizes[0];
  unsigned char *out = new_buffer(bytes), *in = new_buffer(bytes);
  const int steps[] = {1, 10, 100, 1000};
  double times[4] = {0};
  int other = 1 - world.rank, taken = 0;
  bool right = true;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now();
  for (int i = 1; taken < 4 && (i == 1 || (size_t)steps[taken] * bytes <= most_bytes); ++i) {
    if (world.rank == 0) {
      rewrite_lines(out, bytes, (unsigned char)i);
      MPI_Send(out, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
    MPI_Recv(in, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    right &= read_lines(in, bytes, (unsigned char)i);
    if (world.rank == 1) {
      rewrite_lines(out, bytes, (unsigned char)i);
      MPI_Send(out, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
    if (i == steps[taken]) times[taken++] = now() - start;
  }
  require_data(right, "first", bytes);
  introduce(world);
  for (int i = 0; i < taken && world.rank == 0; ++i) {
    char variant[16];
    snprintf(variant, sizeof variant, "%d", steps[i]);
    print_value("first", variant, bytes, times[i] * 1e6);
  }
  MPI_Finalize();
  return 0;
}
