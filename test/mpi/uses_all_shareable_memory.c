// Every rank allocates all memory that MPI_Alloc_mem provides. Messages of every length and large collectives
// still work, and if there is memory for fewer messages than were started, they leave one after the other.
// Intended for a small segment (a small `ulimit -f`).
#include "check.h"

enum { lengths = 6, longest = 1 << 20, many = 500 };
static const int bytes_of[lengths] = {4, 64, 400, 449, 20000, longest};

static int rank, right, left;
static char out[longest], in[longest];

static void take_all_memory(void) {
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  for (MPI_Aint bytes = 8 << 20; bytes >= 64;) {
    void* memory;
    if (MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory) != MPI_SUCCESS) bytes /= 2;
  }
}

static void fill(int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out[i] = (char)(i * 7 + rank);
    in[i] = -1;
  }
}

static void check(int bytes) {
  for (int i = 0; i < bytes; ++i) CHECK(in[i] == (char)(i * 7 + left));
}

static void synchronously(int bytes) {
  MPI_Request sent;
  fill(bytes);
  OK(MPI_Issend(out, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD, &sent));
  OK(MPI_Recv(in, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
  check(bytes);
}

static void by_sendrecv(int bytes) {
  fill(bytes);
  OK(MPI_Sendrecv(out, bytes, MPI_BYTE, right, 0, in, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  check(bytes);
}

static void by_collectives(int size) {
  static int sum[longest / sizeof(int)];
  fill(longest);
  OK(MPI_Bcast(out, longest, MPI_BYTE, 0, MPI_COMM_WORLD));
  for (int i = 0; i < longest; ++i) CHECK(out[i] == (char)(i * 7));
  for (int i = 0; i < longest / (int)sizeof(int); ++i) sum[i] = i + rank;
  OK(MPI_Allreduce(MPI_IN_PLACE, sum, longest / sizeof(int), MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < longest / (int)sizeof(int); ++i) CHECK(sum[i] == i * size + size * (size - 1) / 2);
}

// Each message is under way until it is received.
static void many_at_once(void) {
  static int words[many];
  static MPI_Request sent[many];
  for (int i = 0; i < many; ++i) {
    words[i] = i * 3 + rank;
    OK(MPI_Issend(&words[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &sent[i]));
  }
  for (int i = 0; i < many; ++i) {
    int word = -1;
    OK(MPI_Recv(&word, 1, MPI_INT, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(word == i * 3 + left);
  }
  OK(MPI_Waitall(many, sent, MPI_STATUSES_IGNORE));
}

int main(int argc, char** argv) {
  int size;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  take_all_memory();
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < lengths; ++i) {
    synchronously(bytes_of[i]);
    by_sendrecv(bytes_of[i]);
  }
  by_collectives(size);
  many_at_once();
  OK(MPI_Finalize());
  return 0;
}
