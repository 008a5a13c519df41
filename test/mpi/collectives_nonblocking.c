// Many nonblocking collectives are under way at once and complete in another order than they were started.
// Their datatypes and operations are freed before completion, persistent ones are started again and again,
// and point-to-point messages are sent meanwhile.
#include "check.h"

#include <string.h>

enum { many = 20, count = 3000 };

static void add(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)inout)[2 * i] += ((int*)in)[2 * i];
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  static int sums[many][count], casts[many][count], own[count];
  MPI_Request requests[2 * many + 1];
  for (int i = 0; i < count; ++i) own[i] = rank + i;
  for (int k = 0; k < many; ++k) {
    for (int i = 0; i < count; ++i) casts[k][i] = rank == k % size ? 100 * k + i : -1;
    OK(MPI_Iallreduce(own, sums[k], count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2 * k]));
    OK(MPI_Ibcast(casts[k], count, MPI_INT, k % size, MPI_COMM_WORLD, &requests[2 * k + 1]));
  }
  OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[2 * many]));
  int token = rank, got = -1; // must not match any of their messages
  OK(MPI_Sendrecv(&token, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(got == (rank + size - 1) % size);
  for (int k = 2 * many; k >= 0; --k) OK(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
  for (int k = 0; k < many; ++k)
    for (int i = 0; i < count; ++i) {
      CHECK(sums[k][i] == size * (size - 1) / 2 + size * i);
      CHECK(casts[k][i] == 100 * k + i);
    }

  // The type is freed at once: the operation under way keeps what it needs.
  MPI_Datatype every_other;
  MPI_Op op;
  OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other));
  OK(MPI_Type_commit(&every_other));
  OK(MPI_Op_create(add, 1, &op));
  static int from[2 * count], to[2 * count];
  for (int i = 0; i < 2 * count; ++i) {
    from[i] = i;
    to[i] = -7;
  }
  OK(MPI_Iallreduce(from, to, count, every_other, op, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Type_free(&every_other));
  OK(MPI_Op_free(&op));
  int done = 0;
  while (!done) OK(MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE));
  for (int i = 0; i < 2 * count; ++i) CHECK(to[i] == (i % 2 == 0 ? size * i : -7));

  // The same with short blocks without gaps, again and again: some calls are over when they are made, others wait.
  for (int round = 0; round < 300; ++round) {
    MPI_Datatype three;
    int block[3] = {rank, round, rank + round}, cast[3] = {-1, -1, -1};
    static int blocks[3 * 64];
    CHECK(size <= 64);
    if (rank == round % size) memcpy(cast, block, sizeof cast);
    OK(MPI_Type_contiguous(3, MPI_INT, &three));
    OK(MPI_Type_commit(&three));
    OK(MPI_Iallgather(block, 1, three, blocks, 1, three, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Ibcast(cast, 1, three, round % size, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Type_free(&three));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int from = 0; from < size; ++from)
      CHECK(blocks[3 * from] == from && blocks[3 * from + 1] == round &&
            blocks[3 * from + 2] == from + round);
    CHECK(cast[0] == round % size && cast[1] == round && cast[2] == round % size + round);
  }

  // Persistent collectives.
  int mine = 0, total = 0;
  MPI_Request again[2];
  OK(MPI_Allreduce_init(&mine, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &again[0]));
  OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &again[1]));
  for (int round = 0; round < 50; ++round) {
    mine = rank + round;
    OK(MPI_Startall(2, again));
    OK(MPI_Waitall(2, again, MPI_STATUSES_IGNORE));
    CHECK(total == size * (size - 1) / 2 + size * round);
  }
  OK(MPI_Request_free(&again[0]));
  OK(MPI_Request_free(&again[1]));
  OK(MPI_Finalize());
  return 0;
}
