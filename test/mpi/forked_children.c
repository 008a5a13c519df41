// Children that were made by fork(): calls that communicate nothing work in them as in their parent, and the others end the child with
// an error.
#include "check.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static MPI_Datatype pair;

static void free_pair(void) {
  int finalized = 0;
  if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized) OK(MPI_Type_free(&pair));
}

/// What loggers, and pools of workers in Python, ask for.
static void ask(int rank, int size) {
  int number = 0, length = 0, answer = 0;
  char text[MPI_MAX_PROCESSOR_NAME + MPI_MAX_OBJECT_NAME];
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &number));
  CHECK(number == rank);
  OK(MPI_Comm_size(MPI_COMM_WORLD, &number));
  CHECK(number == size);
  OK(MPI_Get_processor_name(text, &length));
  CHECK(length > 0);
  OK(MPI_Comm_get_name(MPI_COMM_WORLD, text, &length));
  CHECK(strcmp(text, "MPI_COMM_WORLD") == 0);
  OK(MPI_Initialized(&answer));
  OK(MPI_Query_thread(&number));
  OK(MPI_Is_thread_main(&answer));

  MPI_Group group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
  OK(MPI_Group_size(group, &number));
  CHECK(number == size);
  OK(MPI_Group_free(&group));

  MPI_Datatype type;
  OK(MPI_Type_vector(3, 1, 2, pair, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Type_size(type, &number));
  CHECK(number == 6 * (int)sizeof(int));
  OK(MPI_Pack_size(2, type, MPI_COMM_WORLD, &number));
  CHECK(number >= 12 * (int)sizeof(int));
  OK(MPI_Type_free(&type));

  int in[2] = {1, 2}, sum[2] = {10, 20}, *upper = NULL;
  OK(MPI_Reduce_local(in, sum, 2, MPI_INT, MPI_SUM));
  CHECK(sum[0] == 11 && sum[1] == 22);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &answer));
  CHECK(answer && *upper >= 32767);
}

static int status_of(pid_t child) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int count, char** arguments) {
  OK(MPI_Init(&count, &arguments));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  OK(MPI_Type_contiguous(2, MPI_INT, &pair));
  OK(MPI_Type_commit(&pair));
  atexit(free_pair); // runs in children that call exit(), too

  pid_t child = fork();
  if (child == 0) {
    ask(rank, size);
    exit(7);
  }
  CHECK(status_of(child) == 7);

  child = fork();
  if (child == 0) {
    if (rank == 0) MPI_Barrier(MPI_COMM_SELF);
    exit(7);
  }
  CHECK(status_of(child) == (rank == 0 ? 16 : 7));

  ask(rank, size); // the parent goes on
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Type_free(&pair));
  OK(MPI_Finalize());
  return 0;
}
