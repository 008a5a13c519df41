// Tens of thousands of requests of every kind are freed while they are active. Their messages still arrive,
// and MPI_Finalize returns whether they are received or not. An argument sets the number of requests, up to
// `most`: with 60,000 the row ends in time only if the cost of each does not depend on their number.
#include "check.h"

enum { most = 60000, data_tag = 1, left_tag = 2, last_tag = 3, first_tag = 4 };

static int many = 30000;
static int words[most];

enum Kind { plain, synchronous, persistent, buffered, kinds };

static void send_and_free(enum Kind kind, int* word, int to, int tag) {
  MPI_Request request;
  switch (kind) {
  case plain: OK(MPI_Isend(word, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &request)); break;
  case synchronous: OK(MPI_Issend(word, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &request)); break;
  case buffered: OK(MPI_Ibsend(word, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &request)); break;
  default: OK(MPI_Send_init(word, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &request)); OK(MPI_Start(&request));
  }
  OK(MPI_Request_free(&request));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  if (argc > 1) many = atoi(argv[1]);
  CHECK(many > 0 && many <= most);
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int room = many * (MPI_BSEND_OVERHEAD + (int)sizeof(int));
  void* buffer = malloc((size_t)room);
  CHECK(buffer != NULL);
  OK(MPI_Buffer_attach(buffer, room));
  for (int i = 0; i < many; ++i) words[i] = i;
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  // No rank receives yet.
  for (int i = 0; i < many; ++i) send_and_free((enum Kind)(i % kinds), &words[i], to, data_tag);
  static int late[most];
  for (int i = 0; i < many; ++i) {
    MPI_Request request;
    OK(MPI_Irecv(&late[i], 1, MPI_INT, from, first_tag + i, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
  }
  for (int i = 0; i < many; ++i) {
    int word = -1;
    OK(MPI_Recv(&word, 1, MPI_INT, from, data_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(word == i);
  }
  for (int i = many; i-- > 0;) send_and_free(plain, &words[i], to, first_tag + i);
  // These are received while rank 0 is in MPI_Finalize; the last ones are never received.
  for (int i = 0; i < many; ++i) send_and_free(i % 2 == 0 ? plain : synchronous, &words[i], to, left_tag);
  // MPI_Finalize does not wait for messages of others, so all messages for freed receives arrive before it.
  int last = -1;
  OK(MPI_Sendrecv(&rank, 1, MPI_INT, to, last_tag, &last, 1, MPI_INT, from, last_tag, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  CHECK(last == from);
  if (rank != 0)
    for (int i = 0; i < many - 1000; ++i) {
      int word = -1;
      OK(MPI_Recv(&word, 1, MPI_INT, from, left_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(word == i);
    }
  OK(MPI_Finalize());
  // Every receive is complete, although there was no request left to test.
  for (int i = 0; i < many; ++i)
    if (late[i] != i) {
      fprintf(stderr, "rank %d: receive %d has %d\n", rank, i, late[i]);
      return 1;
    }
  return 0;
}
