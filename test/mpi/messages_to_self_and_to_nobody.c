// A process sends to itself in every mode and size. Operations with MPI_PROC_NULL complete at once and
// transfer nothing.
#include "check.h"

#include <string.h>

static char out[300000], in[300000];

static void self(int rank) {
  static const int sizes[] = {0, 1, 64, 65, 4096, 300000};
  for (int s = 0; s < 6; ++s) {
    const int bytes = sizes[s];
    memset(out, 'a' + s, sizeof out);
    memset(in, 0, sizeof in);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int count;
    OK(MPI_Isend(out, bytes, MPI_CHAR, rank, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(in, bytes, MPI_CHAR, rank, 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    OK(MPI_Get_count(&statuses[1], MPI_CHAR, &count));
    CHECK(count == bytes && statuses[1].MPI_SOURCE == rank && memcmp(out, in, (size_t)bytes) == 0);
    memset(in, 0, sizeof in);
    OK(MPI_Irecv(in, bytes, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &requests[0]));
    OK(MPI_Ssend(out, bytes, MPI_CHAR, 0, 2, MPI_COMM_SELF));
    OK(MPI_Wait(&requests[0], &statuses[0]));
    CHECK(statuses[0].MPI_SOURCE == 0 && statuses[0].MPI_TAG == 2 && memcmp(out, in, (size_t)bytes) == 0);
    memset(in, 0, sizeof in);
    OK(MPI_Sendrecv(out, bytes, MPI_CHAR, rank, 3, in, bytes, MPI_CHAR, rank, 3, MPI_COMM_WORLD, statuses));
    CHECK(memcmp(out, in, (size_t)bytes) == 0);
    OK(MPI_Sendrecv_replace(in, bytes, MPI_CHAR, rank, 4, rank, 4, MPI_COMM_WORLD, statuses));
    CHECK(memcmp(out, in, (size_t)bytes) == 0);
    OK(MPI_Isendrecv(out, bytes, MPI_CHAR, rank, 5, in, bytes, MPI_CHAR, rank, 5, MPI_COMM_WORLD, requests));
    OK(MPI_Isendrecv_replace(in + 150000, bytes / 2, MPI_CHAR, rank, 6, rank, 6, MPI_COMM_WORLD,
                             requests + 1));
    OK(MPI_Waitall(2, requests, statuses));
    OK(MPI_Get_count(&statuses[0], MPI_CHAR, &count));
    CHECK(count == bytes && statuses[1].MPI_TAG == 6 && memcmp(out, in, (size_t)bytes / 2) == 0);
  }
}

static void is_from_nobody(const MPI_Status* status) {
  int count;
  OK(MPI_Get_count(status, MPI_CHAR, &count));
  CHECK(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG && count == 0);
}

static void nobody(void) {
  MPI_Status status;
  MPI_Request request;
  MPI_Message message;
  int flag;
  in[0] = 'x';
  OK(MPI_Send(out, 10, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  OK(MPI_Ssend(out, 10, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  OK(MPI_Bsend(out, 10, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  OK(MPI_Recv(in, 10, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
  is_from_nobody(&status);
  OK(MPI_Irecv(in, 10, MPI_CHAR, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
  OK(MPI_Test(&request, &flag, &status));
  CHECK(flag);
  is_from_nobody(&status);
  OK(MPI_Sendrecv(out, 10, MPI_CHAR, MPI_PROC_NULL, 1, in, 10, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
                  &status));
  is_from_nobody(&status);
  OK(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
  is_from_nobody(&status);
  OK(MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, &status));
  CHECK(flag && message == MPI_MESSAGE_NO_PROC);
  OK(MPI_Mrecv(in, 10, MPI_CHAR, &message, &status));
  CHECK(message == MPI_MESSAGE_NULL);
  is_from_nobody(&status);
  OK(MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status));
  OK(MPI_Imrecv(in, 10, MPI_CHAR, &message, &request));
  OK(MPI_Wait(&request, &status));
  is_from_nobody(&status);
  CHECK(in[0] == 'x');
}

/// An empty message to or from MPI_PROC_NULL needs no datatype; all others do.
static void nothing(void) {
  const MPI_Datatype null = MPI_DATATYPE_NULL;
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Status status;
  MPI_Request requests[6];
  MPI_Message message;
  OK(MPI_Recv(NULL, 0, null, MPI_PROC_NULL, 0, world, &status));
  is_from_nobody(&status);
  OK(MPI_Send(NULL, 0, null, MPI_PROC_NULL, 0, world));
  OK(MPI_Ssend(NULL, 0, null, MPI_PROC_NULL, 0, world));
  OK(MPI_Bsend(NULL, 0, null, MPI_PROC_NULL, 0, world));
  OK(MPI_Rsend(NULL, 0, null, MPI_PROC_NULL, 0, world));
  OK(MPI_Sendrecv(NULL, 0, null, MPI_PROC_NULL, 0, NULL, 0, null, MPI_PROC_NULL, 0, world, &status));
  OK(MPI_Sendrecv_replace(NULL, 0, null, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, world, &status));
  OK(MPI_Irecv(NULL, 0, null, MPI_PROC_NULL, 0, world, &requests[0]));
  OK(MPI_Isend(NULL, 0, null, MPI_PROC_NULL, 0, world, &requests[1]));
  OK(MPI_Recv_init(NULL, 0, null, MPI_PROC_NULL, 0, world, &requests[2]));
  OK(MPI_Send_init(NULL, 0, null, MPI_PROC_NULL, 0, world, &requests[3]));
  OK(MPI_Psend_init(NULL, 1, 0, null, MPI_PROC_NULL, 0, world, MPI_INFO_NULL, &requests[4]));
  OK(MPI_Precv_init(NULL, 1, 0, null, MPI_PROC_NULL, 0, world, MPI_INFO_NULL, &requests[5]));
  OK(MPI_Startall(4, requests + 2));
  OK(MPI_Pready(0, requests[4]));
  OK(MPI_Waitall(6, requests, MPI_STATUSES_IGNORE));
  for (int i = 2; i < 6; ++i) OK(MPI_Request_free(&requests[i]));
  OK(MPI_Mprobe(MPI_PROC_NULL, 0, world, &message, &status));
  OK(MPI_Mrecv(NULL, 0, null, &message, &status));
  is_from_nobody(&status);

  OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_TYPE, MPI_Recv(in, 1, null, MPI_PROC_NULL, 0, world, &status));
  FAILS(MPI_ERR_TYPE, MPI_Send(out, 1, null, MPI_PROC_NULL, 0, world));
  FAILS(MPI_ERR_TYPE, MPI_Recv(in, 0, null, 0, 0, world, &status));
  FAILS(MPI_ERR_TYPE, MPI_Isend(out, 0, null, 0, 0, world, &requests[0]));
  FAILS(MPI_ERR_TYPE, MPI_Sendrecv(out, 0, null, 0, 0, in, 0, null, MPI_PROC_NULL, 0, world, &status));
  FAILS(MPI_ERR_TYPE, MPI_Sendrecv_replace(in, 0, null, 0, 0, MPI_PROC_NULL, 0, world, &status));
  FAILS(MPI_ERR_TYPE, MPI_Bcast(in, 0, null, 0, world));
  OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  self(rank);
  nobody();
  nothing();
  OK(MPI_Finalize());
  return 0;
}
