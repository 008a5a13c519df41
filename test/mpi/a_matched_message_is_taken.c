// Probe and matched probe: no other receive can get a matched message, and it arrives complete, whatever its
// size.
#include "check.h"

#include <string.h>

static const int sizes[] = {0, 10, 5000, 400000};

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  static char out[2][400000], in[400000];
  for (int s = 0; s < 4; ++s) {
    MPI_Request requests[2];
    for (int k = 0; k < 2; ++k) {
      memset(out[k], 'a' + s + 10 * k, sizeof out[k]);
      OK(MPI_Isend(out[k], sizes[s], MPI_CHAR, right, 5, MPI_COMM_WORLD, &requests[k]));
    }
    MPI_Message first, second;
    MPI_Status status;
    int count, flag = 0;
    OK(MPI_Probe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &count));
    CHECK(count == sizes[s] && status.MPI_SOURCE == left && status.MPI_TAG == 5);
    OK(MPI_Mprobe(left, 5, MPI_COMM_WORLD, &first, &status));
    CHECK(first != MPI_MESSAGE_NULL && first != MPI_MESSAGE_NO_PROC);
    while (!flag) OK(MPI_Improbe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &second, &status));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);

    MPI_Request request;
    OK(MPI_Imrecv(in, sizes[s], MPI_CHAR, &second, &request));
    CHECK(second == MPI_MESSAGE_NULL);
    OK(MPI_Wait(&request, &status));
    for (int i = 0; i < sizes[s]; i += 101) CHECK(in[i] == 'a' + s + 10);
    OK(MPI_Mrecv(in, sizes[s], MPI_CHAR, &first, &status));
    CHECK(first == MPI_MESSAGE_NULL && status.MPI_SOURCE == left);
    OK(MPI_Get_count(&status, MPI_CHAR, &count));
    CHECK(count == sizes[s]);
    for (int i = 0; i < sizes[s]; i += 101) CHECK(in[i] == 'a' + s);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD)); // the neighbour's next messages must not be probed too early
  }
  // A matched receive also reports truncation.
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI_Request request;
  MPI_Message message;
  OK(MPI_Isend(out[0], 100, MPI_CHAR, right, 6, MPI_COMM_WORLD, &request));
  OK(MPI_Mprobe(left, 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_TRUNCATE, MPI_Mrecv(in, 10, MPI_CHAR, &message, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Finalize());
  return 0;
}
