// One rank of several calls another collective than the others, with data that is long enough for every algorithm. Every
// rank that needs something from it gets an error, and nobody waits for a message that does not come.
#include "check.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { most = 1 << 20, ranks = 8 };

static int rank, size;
static char out[ranks * most], in[ranks * most];

static int class_of(int code) {
  int class = 0;
  OK(MPI_Error_class(code, &class));
  return class;
}

static int alltoall(MPI_Comm comm, int bytes, bool later) {
  if (!later) return MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
  MPI_Request request;
  const int code = MPI_Ialltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm, &request);
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}
static int scatter(MPI_Comm comm, int bytes, bool later) {
  if (!later) return MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm);
  MPI_Request request;
  const int code = MPI_Iscatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm, &request);
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}
static int (*const calls[])(MPI_Comm, int, bool) = {alltoall, scatter};

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size > 2 && size <= ranks);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  for (int bytes = 8 << 10; bytes <= most; bytes *= 8)
    for (int later = 0; later < 2; ++later)
      for (int odd = 0; odd < size; ++odd)
        for (int which = 0; which < 2; ++which) {
          MPI_Comm comm;
          OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
          // Makes the area, and lets the ranks find out whether they can read each other's memory.
          OK(MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm));
          OK(MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm));
          OK(MPI_Barrier(comm));
          memset(out, 'a' + rank, sizeof out);
          if (rank == size - 1) usleep(1000); // the others have met their errors
          const int code = calls[rank == odd ? 1 - which : which](comm, bytes, later != 0);
          // A rank of a scatter needs nothing from most others, and may have had what it needs.
          const bool scatters = (rank == odd) == (which == 0);
          CHECK(class_of(code) == MPI_ERR_OTHER || (scatters && code == MPI_SUCCESS));
          memset(out, '-', sizeof out); // perhaps while another rank still reads it
          for (int i = 0; code == MPI_SUCCESS && i < bytes; ++i) CHECK(in[i] == 'a');
          CHECK(class_of(MPI_Barrier(comm)) == MPI_ERR_OTHER);
          OK(MPI_Comm_free(&comm));
        }
  OK(MPI_Finalize());
  return 0;
}
