// A nonblocking send whose message leaves at once returns a request like any other: every call on requests
// accepts it, a program may hold any number of them, and freeing one does not affect the others.
#include "check.h"

enum { many = 500 };

static MPI_Request started(int* value) {
  MPI_Request request = MPI_REQUEST_NULL;
  OK(MPI_Isend(value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request));
  CHECK(request != MPI_REQUEST_NULL);
  return request;
}

/// Whether the message was withdrawn; otherwise it is on its way.
static int was_cancelled(const MPI_Status* status) {
  int cancelled = -1;
  OK(MPI_Test_cancelled(status, &cancelled));
  return cancelled;
}

/// Returns how many messages it sent.
static int give_up_in_every_way(int* value) {
  int done = 0, index = -1, indices[2], sent = 0;
  MPI_Status status, statuses[2];
  MPI_Request request = started(value), pair[2];
  ++sent;
  while (!done) OK(MPI_Request_get_status(request, &done, &status));
  CHECK(!was_cancelled(&status));
  OK(MPI_Test(&request, &done, &status));
  CHECK(done && request == MPI_REQUEST_NULL && !was_cancelled(&status));

  request = started(value);
  OK(MPI_Cancel(&request)); // too late if it has left
  OK(MPI_Wait(&request, &status));
  sent += !was_cancelled(&status);

  request = started(value), ++sent;
  OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);

  request = started(value), ++sent;
  CHECK(MPI_Request_fromint(MPI_Request_toint(request)) == request);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));

  for (int way = 0; way < 6; ++way) {
    for (int i = 0; i < 2; ++i) pair[i] = started(value), ++sent;
    done = 0;
    switch (way) {
    case 0: OK(MPI_Waitall(2, pair, statuses)); break;
    case 1:
      while (!done) OK(MPI_Testall(2, pair, &done, statuses));
      break;
    case 2:
      while (done < 2) {
        OK(MPI_Waitsome(2, pair, &index, indices, statuses));
        done += index;
      }
      break;
    case 3:
      while (done < 2) {
        OK(MPI_Testsome(2, pair, &index, indices, statuses));
        done += index;
      }
      break;
    case 4:
      OK(MPI_Waitany(2, pair, &index, &status));
      CHECK(pair[index] == MPI_REQUEST_NULL && pair[1 - index] != MPI_REQUEST_NULL);
      while (!done) OK(MPI_Testany(2, pair, &index, &done, &status));
      break;
    default:
      OK(MPI_Request_free(&pair[1]));
      OK(MPI_Wait(&pair[0], &status)); // not affected by that
      CHECK(!was_cancelled(&status));
    }
    CHECK(pair[0] == MPI_REQUEST_NULL && pair[1] == MPI_REQUEST_NULL);
  }
  return sent;
}

static void send_all(void) {
  int values[many], sent = 0, value = -1;
  MPI_Request requests[many], bad;
  for (int round = 0; round < 40; ++round) sent += give_up_in_every_way(&value);
  for (int i = 0; i < many; ++i) {
    values[i] = i;
    requests[i] = started(&values[i]);
  }
  OK(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < many; ++i) CHECK(requests[i] == MPI_REQUEST_NULL);
  bad = started(&value), ++sent;
  FAILS(MPI_ERR_REQUEST, MPI_Start(&bad)); // not persistent
  OK(MPI_Wait(&bad, MPI_STATUS_IGNORE));
  OK(MPI_Send(&sent, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
}

static void receive_all(void) {
  int received = 0, next = 0, value = 0;
  MPI_Status status;
  for (;;) {
    OK(MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    if (status.MPI_TAG == 2) break;
    if (value < 0)
      ++received;
    else
      CHECK(value == next++);
  }
  CHECK(received == value && next == many);
}

int main(int argc, char** argv) {
  int rank;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (rank == 0) send_all();
  if (rank == 1) receive_all();
  OK(MPI_Finalize());
  return 0;
}
