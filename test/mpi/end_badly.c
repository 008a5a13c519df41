// Rank 1 ends in the way that the argument names, while the other ranks wait for it in MPI_Recv.
#include "check.h"
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile sig_atomic_t asked = 0;
static void ask(int number) { asked = number; }

int main(int count, char** arguments) {
  const char* way = count > 1 ? arguments[1] : "well";
  if (strcmp(way, "without-init") == 0 && strcmp(getenv("NEAR_BOOT_RANK"), "1") == 0) return 0;
  OK(MPI_Init(&count, &arguments));
  int rank, size, word = 0;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  prctl(PR_SET_NAME, "in-mpi"); // tells the drivers that MPI is initialised
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 1) {
    if (strcmp(way, "abort") == 0) {
      printf("last words"); // still in the buffer
      MPI_Abort(MPI_COMM_WORLD, 7);
    }
    if (strcmp(way, "abort-0") == 0) MPI_Abort(MPI_COMM_WORLD, 0);
    if (strcmp(way, "kill") == 0) raise(SIGKILL);
    if (strcmp(way, "fault") == 0) raise(SIGSEGV);
    if (strcmp(way, "exit") == 0) _exit(3);
    if (strcmp(way, "no-finalize") == 0) _exit(0);
    if (strcmp(way, "in-recv") == 0) {
      alarm(1); // SIGALRM ends the process inside the call below
    }
    if (strcmp(way, "after-finalize") == 0) {
      OK(MPI_Send(&word, 1, MPI_INT, 0, 7, MPI_COMM_WORLD));
      OK(MPI_Finalize());
      return 5;
    }
    if (strcmp(way, "late") == 0 || strcmp(way, "early") == 0) {
      OK(MPI_Finalize());
      return 5;
    }
  }
  if (strcmp(way, "saves") == 0) {
    signal(SIGTERM, ask);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    puts("waiting");
    fflush(stdout);
    while (!asked) usleep(1000);
    OK(MPI_Barrier(MPI_COMM_WORLD)); // all save together
    sleep(2);
    puts("saved");
    OK(MPI_Finalize());
    return 0;
  }
  if (count > 2) { // later, and to be seen
    sleep(1);
    puts(way);
  }
  if (strcmp(way, "late") == 0) {
    OK(MPI_Finalize());
    sleep(2);
    puts("results");
    return 0;
  }
  if (strcmp(way, "well") != 0 && (strcmp(way, "after-finalize") != 0 || rank == 0))
    OK(MPI_Recv(&word, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Finalize());
  return 0;
}
