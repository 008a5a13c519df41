// The wait and test calls: which requests they complete, the indices and statuses that they return, and how
// they treat null requests.
#include "check.h"

enum { n = 8 };

static int values[n];
static MPI_Request requests[n];

static void post(void) {
  for (int i = 0; i < n; ++i) {
    values[i] = -1;
    OK(MPI_Irecv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_SELF, &requests[i]));
  }
}

static void send(int tag) {
  int value = 100 + tag;
  OK(MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_SELF));
}

static void any(void) {
  post();
  int index, flag;
  MPI_Status status;
  OK(MPI_Testany(n, requests, &index, &flag, &status));
  CHECK(!flag && index == MPI_UNDEFINED);
  send(5);
  OK(MPI_Waitany(n, requests, &index, &status));
  CHECK(index == 5 && requests[5] == MPI_REQUEST_NULL && status.MPI_TAG == 5 && values[5] == 105);
  send(2);
  OK(MPI_Request_get_status_any(n, requests, &index, &flag, &status));
  CHECK(flag && index == 2 && requests[2] != MPI_REQUEST_NULL && status.MPI_TAG == 2);
  OK(MPI_Testany(n, requests, &index, &flag, &status));
  CHECK(flag && index == 2 && requests[2] == MPI_REQUEST_NULL);
  for (int i = 0; i < n; ++i)
    if (requests[i] != MPI_REQUEST_NULL) send(i);
  for (int i = 0; i < n - 2; ++i) {
    OK(MPI_Waitany(n, requests, &index, &status));
    CHECK(status.MPI_TAG == index);
  }
  OK(MPI_Waitany(n, requests, &index, &status));
  CHECK(index == MPI_UNDEFINED && status.MPI_SOURCE == MPI_ANY_SOURCE);
  OK(MPI_Testany(n, requests, &index, &flag, &status));
  CHECK(flag && index == MPI_UNDEFINED);
}

static void some(void) {
  post();
  int count, indices[n], flag;
  MPI_Status statuses[n];
  OK(MPI_Testsome(n, requests, &count, indices, statuses));
  CHECK(count == 0);
  send(6);
  send(1);
  for (flag = 0; !flag;) OK(MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE));
  OK(MPI_Request_get_status_some(n, requests, &count, indices, statuses));
  CHECK(count == 2 && requests[1] != MPI_REQUEST_NULL);
  OK(MPI_Waitsome(n, requests, &count, indices, statuses));
  CHECK(count == 2);
  for (int i = 0; i < count; ++i)
    CHECK(statuses[i].MPI_TAG == indices[i] && requests[indices[i]] == MPI_REQUEST_NULL &&
          values[indices[i]] == 100 + indices[i]);
  for (int i = 0; i < n; ++i)
    if (i != 1 && i != 6) send(i);
  for (int left = n - 2; left > 0; left -= count)
    OK(MPI_Waitsome(n, requests, &count, indices, MPI_STATUSES_IGNORE));
  OK(MPI_Waitsome(n, requests, &count, indices, statuses));
  CHECK(count == MPI_UNDEFINED);
  OK(MPI_Testsome(n, requests, &count, indices, statuses));
  CHECK(count == MPI_UNDEFINED);
}

static void all(void) {
  post();
  int flag, count;
  MPI_Status statuses[n];
  send(0);
  OK(MPI_Testall(n, requests, &flag, statuses));
  CHECK(!flag && requests[0] != MPI_REQUEST_NULL);
  for (int i = n - 1; i > 0; --i) send(i);
  for (flag = 0; !flag;) OK(MPI_Request_get_status_all(n, requests, &flag, statuses));
  CHECK(requests[3] != MPI_REQUEST_NULL && statuses[3].MPI_TAG == 3);
  OK(MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
  for (int i = 0; i < n; ++i) statuses[i].MPI_ERROR = 77;
  OK(MPI_Testall(n, requests, &flag, statuses));
  CHECK(flag && statuses[4].MPI_TAG == 4 && statuses[3].MPI_TAG == MPI_ANY_TAG);
  CHECK(statuses[4].MPI_ERROR == 77); // set only with MPI_ERR_IN_STATUS
  OK(MPI_Get_count(&statuses[3], MPI_INT, &count));
  CHECK(count == 0);
  OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
  OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
}

static void errors(void) {
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  post();
  int count, indices[n], flag;
  MPI_Status statuses[n];
  double two[2] = {0};
  for (int i = 1; i < n; ++i) send(i);
  OK(MPI_Send(two, 2, MPI_DOUBLE, 0, 0, MPI_COMM_SELF));
  for (flag = 0; !flag;) OK(MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_IN_STATUS, MPI_Waitsome(n, requests, &count, indices, statuses));
  CHECK(count == n);
  for (int i = 0; i < n; ++i) FAILS(indices[i] == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS, statuses[i].MPI_ERROR);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  any();
  some();
  all();
  errors();
  OK(MPI_Finalize());
  return 0;
}
