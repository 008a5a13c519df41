// Short operations on private memory need no copy by the kernel while their target waits in MPI: they succeed now and then although the
// kernel refuses such copies to their origin. Those for which the target had no time fail, and lose nothing else.
#include "check.h"
#include "deny.h"

int main(int argc, char** argv) {
  int rank;
  long part[2] = {0, 0};
  MPI_Win win;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Win_create(part, sizeof part, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  long answered = 0;
  if (rank == 1) {
    deny(SYS_process_vm_readv);
    deny(SYS_process_vm_writev);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    while (answered < 1000) { // the watchdog ends a target that never answers
      const long one = 1, value = answered + 1;
      long before = -1;
      int accumulated = MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win);
      if (accumulated == MPI_SUCCESS) accumulated = MPI_Win_flush(0, win);
      if (accumulated != MPI_SUCCESS) continue; // nothing was added
      CHECK(before == answered);
      ++answered;
      int stored = MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
      if (stored == MPI_SUCCESS) stored = MPI_Win_flush(0, win);
      long read = -1;
      int loaded = MPI_Get(&read, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
      if (loaded == MPI_SUCCESS) loaded = MPI_Win_flush(0, win);
      CHECK(stored != MPI_SUCCESS || loaded != MPI_SUCCESS || read == value);
    }
    OK(MPI_Win_unlock(0, win));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Bcast(&answered, 1, MPI_LONG, 1, MPI_COMM_WORLD));
  CHECK(rank != 0 || part[0] == answered);
  OK(MPI_Win_free(&win));
  OK(MPI_Finalize());
  return 0;
}
