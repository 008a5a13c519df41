// A process sends to itself in every mode and size; MPI_PROC_NULL takes and gives nothing, at once.
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

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  self(rank);
  nobody();
  OK(MPI_Finalize());
  return 0;
}
