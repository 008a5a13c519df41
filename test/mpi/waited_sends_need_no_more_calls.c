// After a program has waited for its sends, it may stay outside MPI for as long as it likes, and the messages
// arrive. Rank 0 sends more than the channel holds to rank 1, which is late, waits for the sends in each way,
// and then for a signal from rank 1 that does not come through MPI. The argument is the number of integers in a message.
#define _DEFAULT_SOURCE
#include "own_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

// The answers give all credits back, so that each round begins anew.
enum { most = 300, ways = 5, longest = 4096, answers = 10 };

static int length = 1;
static int values[most][longest];

static void send_in_way(int way, int messages, MPI_Comm comm) {
  MPI_Request requests[most];
  if (way == 0 || way == 1) {
    for (int i = 0; i < messages; ++i) OK(MPI_Isend(values[i], length, MPI_INT, 1, 0, comm, &requests[i]));
    if (way == 0) OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; way == 1 && i < messages; ++i)
      for (int done = 0; !done;) OK(MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE));
  } else if (way == 2) {
    for (int i = 0; i < messages; ++i) OK(MPI_Send(values[i], length, MPI_INT, 1, 0, comm));
  } else if (way == 3) {
    for (int i = 0; i < messages; ++i)
      OK(MPI_Send_init(values[i], length, MPI_INT, 1, 0, comm, &requests[i]));
    OK(MPI_Startall(messages, requests));
    OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < messages; ++i) OK(MPI_Request_free(&requests[i]));
  } else {
    for (int i = 0; i < messages; ++i)
      OK(MPI_Sendrecv(values[i], length, MPI_INT, 1, 0, NULL, 0, MPI_INT, MPI_PROC_NULL, 0, comm,
                      MPI_STATUS_IGNORE));
  }
}

/// A message that the sender packs piece by piece, and a short one behind it.
static void send_long_with_gaps(int rank, int pipe) {
  enum { blocks = most, used = longest / 2 };
  char word = 'x';
  MPI_Datatype gaps;
  OK(MPI_Type_vector(blocks, used, longest, MPI_INT, &gaps));
  OK(MPI_Type_commit(&gaps));
  for (int round = 0; round < 5; ++round) {
    if (rank == 0) {
      for (int i = 0; i < blocks; ++i) values[i][0] = values[i][used - 1] = i + round;
      OK(MPI_Send(values, 1, gaps, 1, 1, MPI_COMM_WORLD));
      OK(MPI_Send(&round, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
      CHECK(read(pipe, &word, 1) == 1);
    } else if (rank == 1) {
      int value = -1;
      OK(MPI_Recv(values, 1, gaps, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      for (int i = 0; i < blocks; ++i) CHECK(values[i][0] == i + round && values[i][used - 1] == i + round);
      OK(MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(value == round);
      CHECK(write(pipe, &word, 1) == 1);
    }
  }
  OK(MPI_Type_free(&gaps));
}

int main(int argc, char** argv) {
  char folder[PATH_MAX], path[PATH_MAX] = "", word = 'x';
  int rank;
  OK(MPI_Init(&argc, &argv));
  if (argc > 1) length = atoi(argv[1]);
  CHECK(length >= 1 && length <= longest);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  if (rank == 0) {
    make_own_folder(folder);
    path_in(folder, "pipe", path);
    CHECK(mkfifo(path, 0600) == 0);
  }
  OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
  // Open until the end, at both ends: a word that is written before the last reader closes the pipe would be lost.
  const int pipe = rank <= 1 ? open(path, O_RDWR) : -1;
  CHECK(rank > 1 || pipe >= 0);
  // 300 messages exceed every channel. With 128 credits some become rendezvous messages, with 1000 none.
  // Fewer may fill a connection to another machine, or leave space in it.
  const int numbers[] = {most, 120, 60, 30, 13};
  for (int round = 0; round < 5 * ways; ++round) {
    const int messages = numbers[round / ways];
    if (rank == 0) {
      for (int i = 0; i < messages; ++i) values[i][0] = values[i][length - 1] = i;
      send_in_way(round % ways, messages, MPI_COMM_WORLD);
      CHECK(read(pipe, &word, 1) == 1);
      for (int i = 0; i < answers; ++i)
        OK(MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
      usleep(20000); // until the channel is full
      for (int i = 0; i < messages; ++i) {
        OK(MPI_Recv(values[0], length, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(values[0][0] == i && values[0][length - 1] == i);
      }
      CHECK(write(pipe, &word, 1) == 1);
      for (int i = 0; i < answers; ++i) OK(MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD));
    }
  }
  send_long_with_gaps(rank, pipe);
  if (rank == 0) { CHECK(unlink(path) == 0 && rmdir(folder) == 0); }
  OK(MPI_Finalize());
  return 0;
}
