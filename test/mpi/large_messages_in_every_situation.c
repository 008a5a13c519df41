// Messages above the eager limit, which may be partly sent before the receiver has answered: expected and
// unexpected, too long for their receive, cancelled, synchronous, with gaps on either side, several at a
// time.
#include "check.h"

#include <string.h>
#include <unistd.h>

enum { longest = 2 << 20, answer_tag = 99 };

static const int sizes[] = {16385, 20000, 40000, 65536, 65537, 131072, 300001, 1 << 20, longest};
enum { size_count = sizeof sizes / sizeof *sizes };

static char out[4][longest], in[4][longest];

static void fill(char* at, int bytes, int seed) {
  for (int i = 0; i < bytes; ++i) at[i] = (char)(i * 7 + seed + (i >> 11));
}
static void check_filled(const char* at, int bytes, int seed) {
  for (int i = 0; i < bytes; ++i) CHECK(at[i] == (char)(i * 7 + seed + (i >> 11)));
}

/// In every second round the receiver is late, so the message is unexpected.
static void expected_and_unexpected(int rank) {
  for (int round = 0; round < 6; ++round)
    for (int s = 0; s < size_count; ++s) {
      if (rank == 0) {
        fill(out[0], sizes[s], round);
        OK(MPI_Send(out[0], sizes[s], MPI_CHAR, 1, s, MPI_COMM_WORLD));
        OK(MPI_Recv(NULL, 0, MPI_CHAR, 1, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      } else {
        int flag = 0;
        while (round % 2 && !flag) OK(MPI_Iprobe(0, s, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        memset(in[0], 0, (size_t)sizes[s]);
        OK(MPI_Recv(in[0], longest, MPI_CHAR, 0, s, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check_filled(in[0], sizes[s], round);
        OK(MPI_Send(NULL, 0, MPI_CHAR, 0, answer_tag, MPI_COMM_WORLD));
      }
    }
}

/// Four messages at once in each direction, received in a different order than sent.
static void several_at_once(int rank) {
  for (int round = 0; round < 8; ++round) {
    MPI_Request requests[8];
    for (int i = 0; i < 4; ++i) {
      fill(out[i], sizes[(round + i) % size_count], rank * 16 + i);
      OK(MPI_Isend(out[i], sizes[(round + i) % size_count], MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD,
                   &requests[i]));
    }
    for (int i = 3; i >= 0; --i)
      OK(MPI_Irecv(in[i], longest, MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD, &requests[4 + i]));
    OK(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 4; ++i) check_filled(in[i], sizes[(round + i) % size_count], (1 - rank) * 16 + i);
  }
}

static void too_long(int rank) {
  const int room[] = {0, 1, 5000, 16384, 16385, 40000};
  for (int s = 0; s < size_count; ++s)
    for (int r = 0; r < 6; ++r) {
      if (room[r] >= sizes[s]) continue;
      if (rank == 0) {
        fill(out[0], sizes[s], r);
        OK(MPI_Send(out[0], sizes[s], MPI_CHAR, 1, s, MPI_COMM_WORLD));
        continue;
      }
      memset(in[0], 0x55, longest);
      FAILS(MPI_ERR_TRUNCATE, MPI_Recv(in[0], room[r], MPI_CHAR, 0, s, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      check_filled(in[0], room[r], r);
      for (int i = room[r]; i < room[r] + 20000; ++i) CHECK(in[0][i] == 0x55);
    }
}

static void cancelled(int rank) {
  for (int s = 0; s < size_count; ++s) {
    if (rank == 0) {
      MPI_Request request;
      MPI_Status status;
      int gone;
      // Tag 2 is never received. Shorter messages leave at once unless they are synchronous.
      if (sizes[s] > 512 << 10)
        OK(MPI_Isend(out[1], sizes[s], MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request));
      else
        OK(MPI_Issend(out[1], sizes[s], MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request));
      OK(MPI_Cancel(&request));
      OK(MPI_Wait(&request, &status));
      OK(MPI_Test_cancelled(&status, &gone));
      CHECK(gone);
      fill(out[0], sizes[s], s);
      OK(MPI_Send(out[0], sizes[s], MPI_CHAR, 1, 1, MPI_COMM_WORLD));
    } else {
      OK(MPI_Recv(in[0], longest, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      check_filled(in[0], sizes[s], s);
    }
  }
}

/// A synchronous send of any size does not complete before its receive has begun.
static void synchronous(int rank) {
  for (int s = 0; s < size_count; ++s) {
    if (rank == 0) {
      MPI_Request request;
      int done = 0;
      OK(MPI_Issend(out[0], sizes[s], MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request));
      for (int i = 0; i < 200; ++i) {
        OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        CHECK(!done);
      }
      OK(MPI_Send(NULL, 0, MPI_CHAR, 1, answer_tag, MPI_COMM_WORLD));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_Recv(NULL, 0, MPI_CHAR, 0, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      OK(MPI_Recv(in[0], longest, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
}

static void with_gaps(int rank) {
  MPI_Datatype every_second;
  OK(MPI_Type_vector(1000, 50, 100, MPI_CHAR, &every_second)); // 50000 bytes of 99950
  OK(MPI_Type_commit(&every_second));
  for (int round = 0; round < 10; ++round) {
    int gaps_out = round & 1, gaps_in = round >> 1 & 1;
    if (rank == 0) {
      fill(out[0], 100000, round);
      if (gaps_out)
        OK(MPI_Send(out[0], 1, every_second, 1, 0, MPI_COMM_WORLD));
      else
        OK(MPI_Send(out[0], 50000, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
      continue;
    }
    memset(in[0], 0x55, 100000);
    if (gaps_in)
      OK(MPI_Recv(in[0], 1, every_second, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    else
      OK(MPI_Recv(in[0], 50000, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    fill(out[0], 100000, round);
    for (int i = 0; i < 50000; ++i) {
      int apart = i / 50 * 100 + i % 50;
      CHECK(in[0][gaps_in ? apart : i] == out[0][gaps_out ? apart : i]);
    }
    for (int block = 0; gaps_in && block < 999; ++block) CHECK(in[0][block * 100 + 50] == 0x55);
  }
  OK(MPI_Type_free(&every_second));
}

int main(int argc, char** argv) {
  // Otherwise a receiver that waits for 1 ms would take a message that is about to be cancelled.
  setenv("NEAR_UNEXPECTED", "0", 1);
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int rank;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  for (int again = 0; again < 3; ++again) { // results must not depend on what the tuner has learned
    expected_and_unexpected(rank);
    several_at_once(rank);
    too_long(rank);
    cancelled(rank);
    synchronous(rank);
    with_gaps(rank);
  }
  OK(MPI_Finalize());
  return 0;
}
