// Another thread completes a generalized request, which ends the wait; its callbacks run in the standard's
// order.
#include "check.h"

#include <pthread.h>
#include <unistd.h>

struct record {
  int queries, frees, cancels;
};

static int query(void* state, MPI_Status* status) {
  struct record* record = state;
  ++record->queries;
  CHECK(record->frees == 0);
  OK(MPI_Status_set_elements(status, MPI_INT, 12));
  OK(MPI_Status_set_cancelled(status, record->cancels != 0));
  status->MPI_SOURCE = 3;
  status->MPI_TAG = 4;
  return MPI_SUCCESS;
}

static int finish(void* state) {
  ++((struct record*)state)->frees;
  return MPI_SUCCESS;
}

static int cancel(void* state, int complete) {
  CHECK(!complete);
  ++((struct record*)state)->cancels;
  return MPI_SUCCESS;
}

static void* complete_later(void* request) {
  usleep(20000);
  OK(MPI_Grequest_complete(*(MPI_Request*)request));
  return NULL;
}

int main(int argc, char** argv) {
  int provided, count, flag;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  for (int round = 0; round < 5; ++round) {
    struct record record = {0, 0, 0};
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Grequest_start(query, finish, cancel, &record, &request));
    OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag && record.queries == 0);
    if (round == 1) OK(MPI_Cancel(&request));
    MPI_Request shared = request; // the waiting call may change its own copy
    pthread_t other;
    CHECK(pthread_create(&other, NULL, complete_later, &shared) == 0);
    OK(MPI_Wait(&request, round == 2 ? MPI_STATUS_IGNORE : &status));
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(request == MPI_REQUEST_NULL && record.queries == 1 && record.frees == 1);
    if (round == 2) continue;
    OK(MPI_Get_count(&status, MPI_INT, &count));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(count == 12 && flag == (round == 1) && status.MPI_SOURCE == 3 && status.MPI_TAG == 4);
  }
  OK(MPI_Finalize());
  return 0;
}
