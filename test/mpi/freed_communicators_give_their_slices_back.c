// Each rank frees a communicator as soon as its own part of a broadcast is over. Other ranks may still read
// the root's slices, which later collectives of other communicators need; the pages of the area are reused.
#include "check.h"

#include <unistd.h>

enum { communicators = 300, most = 300000 };

static unsigned char byte_at(int round, int i) { return (unsigned char)(round * 7 + i); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned char* data = malloc(most);
  int* numbers = malloc(most);
  MPI_Comm kept[8];
  for (int i = 0; i < 8; ++i) kept[i] = MPI_COMM_NULL;
  MPI_Comm made;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  for (int round = 0; round < communicators; ++round) {
    int root = round % size, bytes = round % 3 == 0 ? most : 1000;
    for (int i = 0; i < bytes; ++i) data[i] = rank == root ? byte_at(round, i) : 0;
    if (round % 10 == 5 && rank != root) usleep(2000); // lets the root get far ahead
    MPI_Bcast(data, bytes, MPI_BYTE, root, made);
    for (int i = 0; i < bytes; ++i) CHECK(data[i] == byte_at(round, i));
    // Some communicators live longer, so their pages are reused in a different order.
    if (kept[round % 8] != MPI_COMM_NULL) MPI_Comm_free(&kept[round % 8]);
    if (round % 2 == 0)
      MPI_Comm_free(&made);
    else
      kept[round % 8] = made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Barrier(made); // its area has pages of a freed communicator
    int count = most / (int)sizeof *numbers;
    for (int i = 0; i < count; ++i) numbers[i] = rank + i;
    MPI_Allreduce(MPI_IN_PLACE, numbers, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) CHECK(numbers[i] == size * (size - 1) / 2 + size * i);
  }
  MPI_Comm_free(&made);
  for (int i = 0; i < 8; ++i)
    if (kept[i] != MPI_COMM_NULL) MPI_Comm_free(&kept[i]);
  free(data);
  free(numbers);
  MPI_Finalize();
  return 0;
}
