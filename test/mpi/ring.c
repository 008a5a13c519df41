// A token of every size from 0 bytes to 4 MiB goes round the ring and returns unchanged.
#include "check.h"

#include <string.h>

enum { largest = 4 << 20 };

static unsigned char byte_at(size_t size, size_t index) { return (unsigned char)(size * 31 + index * 7); }

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  unsigned char* out = malloc(largest);
  unsigned char* in = malloc(largest + 1);
  for (size_t bytes = 0; bytes <= largest; bytes = bytes ? bytes * 4 : 1) {
    for (size_t i = 0; i < bytes; ++i) out[i] = byte_at(bytes, i);
    memset(in, 0xee, bytes + 1);
    MPI_Status status;
    if (size == 1) {
      OK(MPI_Sendrecv(out, (int)bytes, MPI_BYTE, right, 5, in, (int)bytes, MPI_BYTE, left, 5, MPI_COMM_WORLD,
                      &status));
    } else if (rank == 0) {
      OK(MPI_Send(out, (int)bytes, MPI_BYTE, right, 5, MPI_COMM_WORLD));
      OK(MPI_Recv(in, (int)bytes, MPI_BYTE, left, 5, MPI_COMM_WORLD, &status));
    } else {
      OK(MPI_Recv(in, (int)bytes, MPI_BYTE, left, 5, MPI_COMM_WORLD, &status));
      OK(MPI_Send(in, (int)bytes, MPI_BYTE, right, 5, MPI_COMM_WORLD));
    }
    int count = -1;
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == (int)bytes && status.MPI_SOURCE == left && status.MPI_TAG == 5);
    for (size_t i = 0; i < bytes; ++i) CHECK(in[i] == byte_at(bytes, i));
    CHECK(in[bytes] == 0xee);
  }
  free(out);
  free(in);
  OK(MPI_Finalize());
  return 0;
}
