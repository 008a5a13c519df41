// On several machines: what the others do when a rank dies, or seems to. deaths FOLDER VICTIM WHAT [errors]: every rank makes a
// file in FOLDER when it is ready. Then VICTIM does nothing, for the test to kill or stop it, and the others do WHAT with it.
// With `errors` they check that they get an error, and finish; otherwise the error ends them.
#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size, victim;

static void make_ready_file(const char* folder) {
  char name[4096];
  snprintf(name, sizeof name, "%s/%d", folder, rank);
  close(open(name, O_CREAT | O_WRONLY, 0600));
}

static void get_ready(const char* folder) {
  MPI_Barrier(MPI_COMM_WORLD);
  // What this rank has sent may need its help to leave, and the victim gives none from here on.
  int found = 0;
  for (double until = MPI_Wtime() + 0.5; MPI_Wtime() < until;)
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  make_ready_file(folder);
}

/// Until the test has killed the victim, and that has been noticed.
static void wait_for_death(const char* folder) {
  char name[4096];
  snprintf(name, sizeof name, "%s/killed", folder);
  while (access(name, F_OK) != 0) usleep(10000);
  sleep(2);
}

static void compute(double seconds) {
  double until = MPI_Wtime() + seconds;
  volatile double sum = 0;
  while (MPI_Wtime() < until)
    for (int i = 0; i < 100000; ++i) sum = sum + i;
}

enum { receives = 24, sends = 4, with_itself = 8, arrived = 4 };

/// MPI_Waitall of many requests: most need the victim, but some are complete, and the statuses say which failed.
static int wait_for_all(void) {
  static char large[sends][1 << 20];
  static int words[receives + arrived + with_itself];
  enum {
    first_arrived = receives + sends,
    first_own = first_arrived + arrived,
    all = first_own + 2 * with_itself
  };
  MPI_Request requests[all];
  MPI_Status statuses[all];
  int n = 0;
  for (int i = 0; i < receives; ++i)
    MPI_Irecv(&words[i], 1, MPI_INT, victim, 1, MPI_COMM_WORLD, &requests[n++]);
  for (int i = 0; i < sends; ++i)
    MPI_Isend(large[i], sizeof large[i], MPI_CHAR, victim, 1, MPI_COMM_WORLD, &requests[n++]);
  for (int i = 0; i < arrived; ++i)
    MPI_Irecv(&words[receives + i], 1, MPI_INT, victim, 9, MPI_COMM_WORLD, &requests[n++]);
  for (int i = 0; i < with_itself; ++i)
    MPI_Irecv(&words[receives + arrived + i], 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[n++]);
  for (int i = 0; i < with_itself; ++i) MPI_Isend(&size, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[n++]);
  CHECK(n == all);
  int class = 0;
  MPI_Error_class(MPI_Waitall(n, requests, statuses), &class);
  CHECK(class == MPI_ERR_IN_STATUS);
  for (int i = 0; i < n; ++i) {
    MPI_Error_class(statuses[i].MPI_ERROR, &class);
    CHECK(class == (i < first_arrived ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS));
    CHECK(requests[i] == MPI_REQUEST_NULL);
  }
  for (int i = 0; i < arrived; ++i) CHECK(words[receives + i] == i);
  for (int i = 0; i < with_itself; ++i) CHECK(words[receives + arrived + i] == size);
  return statuses[0].MPI_ERROR;
}

static char announced[8 << 20];
static MPI_Message matched;

/// The victim announces a long message to all, who match it but do not receive it yet.
static void match_a_message(void) {
  if (rank != victim) {
    OK(MPI_Mprobe(victim, 3, MPI_COMM_WORLD, &matched, MPI_STATUS_IGNORE));
    return;
  }
  MPI_Request request;
  for (int other = 0; other < size; ++other)
    if (other != rank)
      OK(MPI_Isend(announced, sizeof announced, MPI_CHAR, other, 3, MPI_COMM_WORLD, &request));
}

/// Does something that needs the victim; returns its error.
static int use_victim(const char* what) {
  static char large[8 << 20];
  int word = 0;
  MPI_Request request;
  if (strcmp(what, "receive") == 0)
    return MPI_Recv(&word, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (strcmp(what, "probe") == 0) return MPI_Probe(victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (strcmp(what, "mprobe") == 0) {
    MPI_Message message;
    return MPI_Mprobe(victim, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  }
  if (strcmp(what, "send") == 0) {
    MPI_Isend(large, sizeof large, MPI_CHAR, victim, 1, MPI_COMM_WORLD, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (strcmp(what, "small") == 0 || strcmp(what, "first") == 0 || strcmp(what, "later") == 0) {
    int error = MPI_SUCCESS;
    while (error == MPI_SUCCESS) error = MPI_Send(&word, 1, MPI_INT, victim, 1, MPI_COMM_WORLD);
    return error;
  }
  if (strcmp(what, "waitall") == 0) return wait_for_all();
  if (strcmp(what, "mrecv") == 0)
    return MPI_Mrecv(announced, sizeof announced, MPI_CHAR, &matched, MPI_STATUS_IGNORE);
  if (strcmp(what, "imrecv") == 0) {
    OK(MPI_Imrecv(announced, sizeof announced, MPI_CHAR, &matched, &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (strcmp(what, "test") == 0) {
    int done = 0, error = MPI_SUCCESS;
    MPI_Irecv(&word, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, &request);
    while (!done && error == MPI_SUCCESS) error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return error;
  }
  if (strcmp(what, "allreduce") == 0)
    return MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(what, "barrier") == 0) return MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(what, "compute") == 0) {
    compute(600);
    return MPI_SUCCESS;
  }
  CHECK(strcmp(what, "finalize") == 0);
  return MPI_ERR_PROC_ABORTED;
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(count >= 4);
  victim = atoi(arguments[2]);
  const char* what = arguments[3];
  const int errors = count > 4;
  if (errors) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(what, "again") == 0) { // all go on when the victim does
    get_ready(arguments[1]);
    if (rank == victim) compute(atof(arguments[4]));
    int sum = 1;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size);
    MPI_Finalize();
    printf("rank %d has finished\n", rank);
    return 0;
  }
  const int matches = strcmp(what, "mrecv") == 0 || strcmp(what, "imrecv") == 0;
  if (matches) match_a_message();
  if (strcmp(what, "waitall") == 0 && rank == victim) // these arrive
    for (int other = 0; other < size; ++other)
      for (int i = 0; i < arrived && other != rank; ++i)
        OK(MPI_Send(&i, 1, MPI_INT, other, 9, MPI_COMM_WORLD));
  if (strcmp(what, "first") == 0) // no message has been sent to the victim when it dies
    make_ready_file(arguments[1]);
  else
    get_ready(arguments[1]);
  if (rank == victim)
    for (;;) pause();
  if (strcmp(what, "first") == 0 || strcmp(what, "later") == 0 || matches) wait_for_death(arguments[1]);
  int class = 0;
  MPI_Error_class(use_victim(what), &class);
  CHECK(class == MPI_ERR_PROC_ABORTED);
  if (strcmp(what, "finalize") != 0) {
    int word =
        0; // and so does what follows; of a collective's error this rank may have heard before it noticed the loss itself
    const int hears = strcmp(what, "allreduce") == 0 || strcmp(what, "barrier") == 0;
    while (MPI_Send(&word, 1, MPI_INT, victim, 2, MPI_COMM_WORLD) == MPI_SUCCESS) CHECK(hears);
    CHECK(MPI_Recv(&word, 1, MPI_INT, victim, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  }
  printf("rank %d ends\n", rank);
  fflush(stdout);
  MPI_Finalize();
  printf("rank %d has finished\n", rank);
  fflush(stdout);
  sleep(1); // Slurm ends the step when this process does, and drops what it has not read
  return 0;
}
