// On several machines: machines EACH checks messages of all lengths and collectives between ranks of which EACH are neighbours
// on a machine; machines abort, die RANK and application NUMBER do what they say.
#include "check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void exchange(size_t bytes) {
  char* out = malloc(bytes + 1);
  char* in = malloc(bytes + 1);
  for (int step = 1; step < size; ++step) {
    int to = (rank + step) % size, from = (rank + size - step) % size;
    for (size_t i = 0; i < bytes; ++i) out[i] = (char)(rank * 7 + i * 3 + (i >> 8));
    memset(in, 0, bytes + 1);
    MPI_Status status;
    MPI_Sendrecv(out, (int)bytes, MPI_CHAR, to, step, in, (int)bytes, MPI_CHAR, from, step, MPI_COMM_WORLD,
                 &status);
    int count = -1;
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK(count == (int)bytes);
    for (size_t i = 0; i < bytes; ++i) CHECK(in[i] == (char)(from * 7 + i * 3 + (i >> 8)));
  }
  free(out);
  free(in);
}

static void with_gaps(void) {
  MPI_Datatype column;
  MPI_Type_vector(1000, 1, 3, MPI_INT, &column);
  MPI_Type_commit(&column);
  int* out = malloc(3000 * sizeof(int));
  int* in = malloc(3000 * sizeof(int));
  for (int i = 0; i < 3000; ++i) out[i] = rank * 10000 + i, in[i] = -1;
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Sendrecv(out, 1, column, to, 1, in, 1, column, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 3000; ++i) CHECK(in[i] == (i % 3 == 0 && i < 2998 ? from * 10000 + i : -1));
  free(out);
  free(in);
  MPI_Type_free(&column);
}

static void collectives(void) {
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2);
  int* all = malloc((size_t)size * sizeof(int));
  MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) CHECK(all[i] == i);
  free(all);
  static double large[300000];
  for (int i = 0; i < 300000; ++i) large[i] = rank == size - 1 ? i : 0;
  MPI_Bcast(large, 300000, MPI_DOUBLE, size - 1, MPI_COMM_WORLD);
  for (int i = 0; i < 300000; ++i) CHECK(large[i] == i);
}

static void neighbours(int each) {
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  int ranks = 0, sum = 0;
  MPI_Comm_size(here, &ranks);
  CHECK(ranks == size / 2); // on two machines
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, here);
  int expected = 0;
  for (int other = 0; other < size; ++other)
    if (other / each % 2 == rank / each % 2) expected += other;
  CHECK(sum == expected);
  int* shared = NULL;
  MPI_Win window;
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, here, &shared, &window);
  *shared = rank;
  MPI_Win_fence(0, window);
  int local = 0;
  MPI_Comm_rank(here, &local);
  int* theirs = NULL;
  MPI_Aint bytes = 0;
  int unit = 0;
  MPI_Win_shared_query(window, (local + 1) % ranks, &bytes, &unit, &theirs);
  CHECK(*theirs / each % 2 == rank / each % 2);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Comm_free(&here);
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(name, &length);
  printf("rank %d on %s\n", rank, name);
  fflush(stdout);
  const char* what = count > 1 ? arguments[1] : "1";
  if (strcmp(what, "application") == 0) {
    int *number = NULL, found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found);
    CHECK(found && *number == atoi(arguments[2]));
  } else if (strcmp(what, "abort") == 0) {
    if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(what, "die") == 0) {
    if (rank == atoi(arguments[2])) raise(SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    for (size_t bytes = 0; bytes < (4u << 20); bytes = bytes * 5 + 1) exchange(bytes);
    exchange(16352);
    exchange(16384);
    with_gaps();
    collectives();
    neighbours(atoi(what));
  }
  MPI_Finalize();
  return 0;
}
