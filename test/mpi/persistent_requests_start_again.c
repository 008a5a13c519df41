// Persistent requests of all modes are started, completed, started again, and also freed while active.
#include "check.h"

enum { rounds = 50, words = 5000 };

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)); // for a null request
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  static int out[4][words], in[4][words];
  static char room[words * 4 + MPI_BSEND_OVERHEAD];
  OK(MPI_Buffer_attach(room, sizeof room));
  MPI_Request requests[8];
  MPI_Status statuses[8];
  for (int k = 0; k < 4; ++k) OK(MPI_Recv_init(in[k], words, MPI_INT, left, k, MPI_COMM_WORLD, &requests[k]));
  OK(MPI_Send_init(out[0], words, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[4]));
  OK(MPI_Ssend_init(out[1], 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[5]));
  OK(MPI_Bsend_init(out[2], words, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[6]));
  OK(MPI_Rsend_init(out[3], 100, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[7]));

  // Inactive requests count as complete, with an empty status.
  MPI_Status status;
  int flag, count, index;
  OK(MPI_Test(&requests[0], &flag, &status));
  CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
  OK(MPI_Waitany(8, requests, &index, &status));
  CHECK(index == MPI_UNDEFINED);
  FAILS(MPI_ERR_REQUEST, MPI_Start(&(MPI_Request){MPI_REQUEST_NULL}));

  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < words; ++i) out[k][i] = round * 1000000 + k * 100000 + i + rank;
    OK(MPI_Startall(4, requests));
    if (round == 0) FAILS(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
    OK(MPI_Barrier(MPI_COMM_WORLD)); // the ready send needs a posted receive
    for (int k = 4; k < 8; ++k) OK(MPI_Start(&requests[k]));
    OK(MPI_Waitall(8, requests, statuses));
    for (int k = 0; k < 4; ++k) {
      CHECK(requests[k] != MPI_REQUEST_NULL);
      static const int counts[] = {words, 1, words, 100};
      OK(MPI_Get_count(&statuses[k], MPI_INT, &count));
      CHECK(count == counts[k] && statuses[k].MPI_SOURCE == left && statuses[k].MPI_TAG == k);
      for (int i = 0; i < count; ++i) CHECK(in[k][i] == round * 1000000 + k * 100000 + i + left);
    }
  }
  // A request is freed while active: its message still arrives.
  OK(MPI_Start(&requests[0]));
  OK(MPI_Start(&requests[4]));
  OK(MPI_Request_free(&requests[4]));
  CHECK(requests[4] == MPI_REQUEST_NULL);
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  for (int k = 0; k < 8; ++k)
    if (k != 4) OK(MPI_Request_free(&requests[k]));
  void* base;
  int bytes;
  OK(MPI_Buffer_detach(&base, &bytes));
  CHECK(base == room && bytes == (int)sizeof room);
  OK(MPI_Finalize());
  return 0;
}
