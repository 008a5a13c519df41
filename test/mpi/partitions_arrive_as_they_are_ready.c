// Partitioned communication: parts leave in any order, and both sides may cut the same data differently, even
// through the elements of a type with gaps.
#include "check.h"

enum { words = 120000, rounds = 5 };
static int out[words], in[words * 2];

/// `parts` sends against `pieces` receives; the receive's type has a gap after each `width` words.
static void exchange(int right, int left, int rank, int parts, int pieces, int width) {
  MPI_Datatype spaced, element;
  OK(MPI_Type_contiguous(width, MPI_INT, &element));
  OK(MPI_Type_create_resized(element, 0, (MPI_Aint)sizeof(int) * (width == 1 ? 1 : width + 1), &spaced));
  OK(MPI_Type_commit(&spaced));
  const int stride = width == 1 ? 1 : width + 1;
  MPI_Request send, receive;
  OK(MPI_Psend_init(out, parts, words / parts, MPI_INT, right, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(in, pieces, words / width / pieces, spaced, left, 9, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &receive));
  OK(MPI_Type_free(&element));
  OK(MPI_Type_free(&spaced));
  for (int round = 0; round < rounds; ++round) {
    int flag;
    for (int i = 0; i < words; ++i) out[i] = i + rank * 7 + round;
    for (int i = 0; i < words * 2; ++i) in[i] = -1;
    OK(MPI_Start(&receive));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Parrived(receive, 0, &flag));
    CHECK(!flag);
    OK(MPI_Start(&send));
    for (int i = parts - 1; i > 0; --i) OK(MPI_Pready(i, send));
    for (int i = 0; i < 100; ++i) {
      OK(MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
      CHECK(!flag);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); // part 0 is not ready before this on any rank
    OK(MPI_Parrived(receive, 0, &flag));
    CHECK(!flag);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Pready(0, send));
    for (int i = 0; i < pieces; ++i)
      for (flag = 0; !flag;) OK(MPI_Parrived(receive, i, &flag));
    for (int i = 0; i < words; ++i) CHECK(in[i / width * stride + i % width] == i + left * 7 + round);
    MPI_Status status;
    OK(MPI_Wait(&receive, &status));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    int count;
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == words && status.MPI_SOURCE == left && status.MPI_TAG == 9);
  }
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  exchange(right, left, rank, 4, 4, 1);
  exchange(right, left, rank, 10, 3, 1);
  exchange(right, left, rank, 3, 8, 1);
  exchange(right, left, rank, 4, 2, 5);
  exchange(right, left, rank, 6, 2, 3); // a cut inside an element with a gap

  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI_Request send;
  OK(MPI_Psend_init(out, 2, 1, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, send));
  OK(MPI_Start(&send));
  FAILS(MPI_ERR_ARG, MPI_Pready(2, send));
  OK(MPI_Pready(0, send));
  FAILS(MPI_ERR_ARG, MPI_Pready(0, send));
  OK(MPI_Pready_range(1, 1, send));
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&send));
  OK(MPI_Finalize());
  return 0;
}
