// The target has freed a page of its part of a window, and computes. Of ten operations before a flush, the one on that page fails, and
// the flush tells; the others are done.
#include "check.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { operations = 10, freed = 4, page = 4096 };

static long* at(char* part, int operation) { return (long*)(void*)(part + operation * page); }

int main(int argc, char** argv) {
  int rank;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  char* part = mmap(NULL, operations * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(part != MAP_FAILED);
  memset(part, 0, operations * page);
  atomic_int* over = NULL;
  MPI_Win shared, win;
  MPI_Aint bytes;
  int unit;
  OK(MPI_Win_allocate_shared(rank == 0 ? (MPI_Aint)sizeof *over : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &over,
                             &shared));
  OK(MPI_Win_shared_query(shared, 0, &bytes, &unit, &over));
  OK(MPI_Win_create(part, operations * page, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  if (rank == 0) CHECK(munmap(part + freed * page, page) == 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    while (!atomic_load(over))
      usleep(1000); // without MPI: otherwise this process would access the page itself
    for (int i = 0; i < operations; ++i) CHECK(i == freed || *at(part, i) == 100 + 2 * i);
  } else {
    long values[operations], results[operations];
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    for (int i = 0; i < operations; ++i) {
      values[i] = 100 + i;
      OK(MPI_Put(&values[i], 1, MPI_LONG, 0, i * page, 1, MPI_LONG, win));
    }
    FAILS(MPI_ERR_RMA_RANGE, MPI_Win_flush(0, win));
    OK(MPI_Win_flush(0, win)); // it was told
    memset(results, 0, sizeof results);
    for (int i = 0; i < operations; ++i) OK(MPI_Get(&results[i], 1, MPI_LONG, 0, i * page, 1, MPI_LONG, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Win_flush(0, win));
    for (int i = 0; i < operations; ++i) CHECK(i == freed || results[i] == 100 + i);
    for (int i = 0; i < operations; ++i) values[i] = i;
    for (int i = 0; i < operations; ++i)
      OK(MPI_Get_accumulate(&values[i], 1, MPI_LONG, &results[i], 1, MPI_LONG, 0, i * page, 1, MPI_LONG,
                            MPI_SUM, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Win_unlock(0, win));
    for (int i = 0; i < operations; ++i) CHECK(i == freed || results[i] == 100 + i);
    atomic_store(over, 1);
  }
  OK(MPI_Win_free(&win));
  OK(MPI_Win_free(&shared));
  OK(MPI_Finalize());
  return 0;
}
