// 10,000 unexpected messages wait for their receives, which are posted in the opposite order of tags.
// Nonblocking sends never block because the receiver has no free space.
#include "check.h"

enum { messages = 10000, words = 30, tags = 10 };

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int(*out)[words] = malloc(sizeof(int[words]) * messages);
  MPI_Request* requests = malloc(sizeof(MPI_Request) * messages);
  for (int i = 0; i < messages; ++i) {
    for (int w = 0; w < words; ++w) out[i][w] = rank * 100000 + i;
    OK(MPI_Isend(out[i], words, MPI_INT, right, i % tags, MPI_COMM_WORLD, &requests[i]));
  }
  for (int tag = tags - 1; tag >= 0; --tag)
    for (int i = tag; i < messages; i += tags) {
      int in[words];
      OK(MPI_Recv(in, words, MPI_INT, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(in[0] == left * 100000 + i && in[words - 1] == in[0]);
    }
  OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
  free(out);
  free(requests);
  OK(MPI_Finalize());
  return 0;
}
