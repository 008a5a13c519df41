// The fast path of small messages must behave like the slow path: every length and alignment, the status, the
// order among messages of all kinds, and the cases that the fast path must leave to the slow path (wildcards,
// posted receives, other communicators, mistakes, calls inside callbacks).
#include "check.h"

#include <string.h>

enum { inlined = 88, many = 3000 };

static int rank;

static void fill(unsigned char* buffer, int bytes, int number) {
  for (int i = 0; i < bytes; ++i) buffer[i] = (unsigned char)(number * 31 + i * 7 + 1);
}

static void check_filled(const unsigned char* buffer, int bytes, int number) {
  for (int i = 0; i < bytes; ++i) CHECK(buffer[i] == (unsigned char)(number * 31 + i * 7 + 1));
}

static void talk(void) { // enough for the pair to get a lane
  char byte = 0;
  for (int i = 0; i < 200; ++i) {
    if (rank == 0) OK(MPI_Send(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    OK(MPI_Recv(&byte, 1, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 1) OK(MPI_Send(&byte, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
  }
}

/// No byte outside the message is read or written.
static void every_length_at_every_alignment(void) {
  enum { most = inlined + 10, guard = 0xee };
  _Alignas(64) unsigned char out[most + 32], in[most + 32];
  MPI_Status status;
  for (int bytes = 0; bytes <= most; ++bytes)
    for (int shift = 0; shift < 17; shift += 1 + shift / 3) {
      if (rank == 0) {
        fill(out + shift, bytes, bytes);
        OK(MPI_Send(out + shift, bytes, MPI_CHAR, 1, bytes, MPI_COMM_WORLD));
      } else if (rank == 1) {
        int count = -1;
        memset(in, guard, sizeof in);
        memset(&status, 0x55, sizeof status);
        OK(MPI_Recv(in + shift, bytes, MPI_CHAR, 0, bytes % 2 ? bytes : MPI_ANY_TAG, MPI_COMM_WORLD,
                    &status));
        check_filled(in + shift, bytes, bytes);
        for (int i = 0; i < (int)sizeof in; ++i) CHECK((i >= shift && i < shift + bytes) || in[i] == guard);
        int cancelled = 1;
        OK(MPI_Get_count(&status, MPI_CHAR, &count));
        OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK(count == bytes && status.MPI_SOURCE == 0 && status.MPI_TAG == bytes && !cancelled);
      }
    }
}

static void other_types_and_large_counts(void) {
  double out[11] = {1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.25}, in[40] = {0};
  MPI_Status status;
  MPI_Count count = 0;
  if (rank == 0) {
    OK(MPI_Send_c(out, 11, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD));
    OK(MPI_Send(out, 11, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD));
  } else if (rank == 1) {
    OK(MPI_Recv(in, 40, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &status)); // the buffer is longer than the message
    OK(MPI_Get_count_c(&status, MPI_DOUBLE, &count));
    CHECK(count == 11 && in[10] == 11.25 && in[11] == 0);
    OK(MPI_Recv_c(in, 11, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, &status));
    CHECK(in[0] == 1.5);
  }
}

/// Small messages, mixed with packets, rendezvous messages and synchronous sends, for receives of every kind.
static void order_among_all_kinds(MPI_Comm comm) {
  static unsigned char buffer[100000];
  static const int sizes[] = {8, 1, 88, 0, 89, 8, 4000, 8, 100000, 16, 8, 33};
  for (int number = 0; number < many; ++number) {
    int bytes = sizes[(number * 5 + number / 12) % 12];
    if (rank == 0) {
      fill(buffer, bytes, number);
      if (number % 11 == 3) {
        OK(MPI_Ssend(buffer, bytes, MPI_BYTE, 1, 9, comm));
      } else if (number % 2) {
        OK(MPI_Send(buffer, bytes, MPI_BYTE, 1, 9, comm));
      } else {
        MPI_Request request = MPI_REQUEST_NULL;
        OK(MPI_Isend(buffer, bytes, MPI_BYTE, 1, 9, comm, &request));
        CHECK(request != MPI_REQUEST_NULL);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(request == MPI_REQUEST_NULL);
      }
    } else if (rank == 1) {
      int count = -1;
      MPI_Status status;
      if (number % 5 == 2) {
        MPI_Request request;
        OK(MPI_Irecv(buffer, sizeof buffer, MPI_BYTE, number % 3 ? 0 : MPI_ANY_SOURCE, 9, comm, &request));
        OK(MPI_Wait(&request, &status));
      } else if (number % 7 == 3) {
        OK(MPI_Probe(0, MPI_ANY_TAG, comm, &status));
        OK(MPI_Recv(buffer, sizeof buffer, MPI_BYTE, 0, 9, comm, &status));
      } else {
        OK(MPI_Recv(buffer, sizeof buffer, MPI_BYTE, 0, number % 2 ? 9 : MPI_ANY_TAG, comm, &status));
      }
      OK(MPI_Get_count(&status, MPI_BYTE, &count));
      CHECK(count == bytes);
      check_filled(buffer, bytes, number);
    }
  }
}

/// A posted receive matches before a later one, and a waiting message before one that arrives later.
static void earlier_receives_and_messages_come_first(void) {
  int out[3] = {1, 2, 3}, posted = 0, called = 0, other = 0;
  if (rank == 0) {
    MPI_Request requests[3]; // blocking sends that wait for their receives would deadlock
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 3; ++i)
      OK(MPI_Isend(&out[i], 1, MPI_INT, 1, i == 2 ? 8 : 7, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  } else if (rank == 1) {
    MPI_Request request;
    OK(MPI_Irecv(&posted, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Recv(&other, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); // now the second message waits
    OK(MPI_Recv(&called, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(posted == 1 && called == 2 && other == 3);
  } else {
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
}

static void mistakes_are_still_found(void) {
  long value = 7;
  int back = 0;
  MPI_Comm comm;
  MPI_Request request;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  if (rank == 0) {
    FAILS(MPI_ERR_COUNT, MPI_Send(&value, -1, MPI_BYTE, 1, 0, comm));
    FAILS(MPI_ERR_COUNT, MPI_Send_c(&value, -8, MPI_LONG, 1, 0, comm));
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_BYTE, 1, -1, comm));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_BYTE, 2, 0, comm));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_BYTE, -7, 0, comm));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 0, MPI_DATATYPE_NULL, 1, 0, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, MPI_BYTE, 1, 0, comm));
    FAILS(MPI_ERR_ARG, MPI_Isend(&value, 1, MPI_BYTE, 1, 0, comm, NULL));
    FAILS(MPI_ERR_COUNT, MPI_Recv(&value, -1, MPI_BYTE, 1, 0, comm, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_RANK, MPI_Recv(&value, 1, MPI_BYTE, 2, 0, comm, MPI_STATUS_IGNORE));
    OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 0, comm)); // this is correct
    OK(MPI_Send(&value, 1, MPI_LONG, 1, 0, comm));
    OK(MPI_Isend(&value, 1, MPI_LONG, 1, 0, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (rank == 1) {
    OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(&back, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&value, 1, MPI_LONG, 0, 0, comm, MPI_STATUS_IGNORE));
    CHECK(value == 7);
  }
  OK(MPI_Comm_free(&comm));
}

/// A callback of the program calls MPI inside an MPI call.
static int exchange_in_callback(MPI_Comm comm, int keyval, void* value, void* extra) {
  int out = rank, in = -1;
  (void)comm, (void)keyval, (void)value, (void)extra;
  if (rank > 1) return MPI_SUCCESS;
  for (int i = 0; i < 50; ++i) {
    if (rank == 0) OK(MPI_Send(&out, 1, MPI_INT, 1, 4, MPI_COMM_WORLD));
    OK(MPI_Recv(&in, 1, MPI_INT, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 1) OK(MPI_Send(&out, 1, MPI_INT, 0, 4, MPI_COMM_WORLD));
    CHECK(in == 1 - rank);
  }
  return MPI_SUCCESS;
}

static void calls_inside_callbacks(void) {
  int key;
  MPI_Comm comm;
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, exchange_in_callback, &key, NULL));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_set_attr(comm, key, NULL));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free_keyval(&key));
}

/// More messages than there are slots and credits.
static void flood(void) {
  int value = 0;
  if (rank == 0) {
    for (int i = 0; i < 20 * many; ++i) OK(MPI_Send(&i, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
    OK(MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
  } else if (rank == 1) {
    for (int i = 0; i < 20 * many; ++i) {
      OK(MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(value == i);
    }
    OK(MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
}

int main(int argc, char** argv) {
  MPI_Comm other;
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  every_length_at_every_alignment();
  if (rank < 2) talk();
  every_length_at_every_alignment();
  other_types_and_large_counts();
  order_among_all_kinds(MPI_COMM_WORLD);
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  order_among_all_kinds(other);
  OK(MPI_Comm_free(&other));
  for (int i = 0; i < 50; ++i) earlier_receives_and_messages_come_first();
  mistakes_are_still_found();
  calls_inside_callbacks();
  flood();
  OK(MPI_Finalize());
  return 0;
}
