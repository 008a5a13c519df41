// Buffered sends return before their receives are posted, as long as the attached buffer has free space; then
// they fail with MPI_ERR_BUFFER. A buffer belongs to the process or to a communicator.
#include "check.h"

enum { bytes = 2000000 }; // too many to leave at once
static char data[bytes], room[2 * (bytes + MPI_BSEND_OVERHEAD)];

int main(int argc, char** argv) {
  // Otherwise a receiver that waits for 1 ms would take a message, and there would be space again.
  setenv("NEAR_UNEXPECTED", "0", 1);
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  void* base;
  int length;
  FAILS(MPI_ERR_BUFFER, MPI_Bsend(data, bytes, MPI_CHAR, right, 1, MPI_COMM_WORLD));
  OK(MPI_Buffer_attach(room, sizeof room));
  for (int round = 0; round < 5; ++round) {
    for (int k = 0; k < 2; ++k) {
      data[0] = (char)(10 * round + k);
      OK(MPI_Bsend(data, bytes, MPI_CHAR, right, 1, MPI_COMM_WORLD));
    }
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(data, bytes, MPI_CHAR, right, 1, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int k = 0; k < 2; ++k) {
      OK(MPI_Recv(data, bytes, MPI_CHAR, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(data[0] == 10 * round + k);
    }
    OK(MPI_Buffer_flush());
  }
  MPI_Request request;
  OK(MPI_Ibsend(data, bytes, MPI_CHAR, right, 1, MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Buffer_iflush(&request));
  OK(MPI_Recv(data, bytes, MPI_CHAR, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Buffer_detach(&base, &length));
  CHECK(base == room && length == (int)sizeof room);

  OK(MPI_Comm_attach_buffer(MPI_COMM_WORLD, MPI_BUFFER_AUTOMATIC, 0));
  for (int k = 0; k < 20; ++k) {
    data[0] = (char)k;
    OK(MPI_Bsend(data, bytes, MPI_CHAR, right, 2, MPI_COMM_WORLD));
  }
  for (int k = 0; k < 20; ++k) {
    OK(MPI_Recv(data, bytes, MPI_CHAR, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(data[0] == k);
  }
  OK(MPI_Comm_flush_buffer(MPI_COMM_WORLD));
  OK(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &base, &length));
  CHECK(base == MPI_BUFFER_AUTOMATIC);
  FAILS(MPI_ERR_BUFFER, MPI_Comm_detach_buffer(MPI_COMM_WORLD, &base, &length));
  OK(MPI_Finalize());
  return 0;
}
