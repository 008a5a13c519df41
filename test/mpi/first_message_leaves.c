// A message has left when MPI_Send returns: rank 0 sends the first message of the job to each other rank, and then stays outside
// MPI until all have it. The argument says by which call it begins: MPI_Send, MPI_Isend and MPI_Wait, or MPI_Bcast; the others follow.
#define _DEFAULT_SOURCE
#include "own_folder.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { ways = 3 };

static char folder[PATH_MAX], path[PATH_MAX];

static void pass_on(int way, int rank, int size) {
  MPI_Request request;
  if (way == 2) {
    OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
    return;
  }
  if (rank != 0) OK(MPI_Recv(path, sizeof path, MPI_CHAR, 0, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int other = 1; rank == 0 && other < size; ++other)
    if (way == 0) {
      OK(MPI_Send(path, sizeof path, MPI_CHAR, other, way, MPI_COMM_WORLD));
    } else {
      OK(MPI_Isend(path, sizeof path, MPI_CHAR, other, way, MPI_COMM_WORLD, &request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

int main(int argc, char** argv) {
  int rank, size;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int first = argc > 1 ? atoi(argv[1]) : 0;
  int pipe = -1;
  if (rank == 0) {
    make_own_folder(folder);
    path_in(folder, "pipe", path);
    CHECK(mkfifo(path, 0600) == 0);
    pipe = open(path, O_RDWR);
    CHECK(pipe >= 0);
  }
  for (int i = 0; i < ways; ++i) {
    if (rank != 0) path[0] = 0;
    pass_on((first + i) % ways, rank, size);
    if (rank != 0 && pipe < 0) pipe = open(path, O_RDWR);
    CHECK(pipe >= 0);
    char word = 'x';
    if (rank != 0) CHECK(write(pipe, &word, 1) == 1);
    for (int other = 1; rank == 0 && other < size; ++other) CHECK(read(pipe, &word, 1) == 1);
  }
  if (rank == 0) CHECK(unlink(path) == 0 && rmdir(folder) == 0);
  OK(MPI_Finalize());
  return 0;
}
