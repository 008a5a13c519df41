// Programs that send many messages before anybody receives them: each call returns, although their receivers wait for something else,
// and everything arrives in order. Only synchronous sends wait for their receives.
//   sends_before_their_receives [messages]    0: only what needs little space
#include "check.h"

#include <string.h>
#include <unistd.h>

enum { most = 16 << 10, data_tag = 1, last_tag = 2, odd_tag = 3, first_of_many = 10 };

static int rank, size, count = 400;

/// Of the i-th message to or from anybody.
static int length_of(int i) {
  static const int lengths[] = {8, 0, 100, 3, 500, 3000, 8, 4096, 16, most};
  return lengths[i % 10];
}

static void fill(char* buffer, int from, int to, int i) {
  for (int k = 0; k < length_of(i); ++k) buffer[k] = (char)(from * 7 + to * 31 + i * 3 + k);
}

static void check(const char* buffer, int from, int to, int i) {
  for (int k = 0; k < length_of(i); ++k) CHECK(buffer[k] == (char)(from * 7 + to * 31 + i * 3 + k));
}

static void send_to_all(char* buffer, int self_too) {
  for (int i = 0; i < count; ++i)
    for (int to = 0; to < size; ++to) {
      if (to == rank && !self_too) continue;
      fill(buffer, rank, to, i);
      OK(MPI_Send(buffer, length_of(i), MPI_BYTE, to, data_tag, MPI_COMM_WORLD));
    }
}

static void receive_next(char* buffer, int from, int i) {
  MPI_Status status;
  int length;
  OK(MPI_Recv(buffer, most, MPI_BYTE, from, data_tag, MPI_COMM_WORLD, &status));
  OK(MPI_Get_count(&status, MPI_BYTE, &length));
  CHECK(length == length_of(i));
  check(buffer, from, rank, i);
}

static void receive_from_all(char* buffer, int self_too) {
  for (int from = size - 1; from >= 0; --from)
    for (int i = 0; i < count && (from != rank || self_too); ++i) receive_next(buffer, from, i);
}

/// All send before anybody receives.
static void all_send_first(char* buffer) {
  send_to_all(buffer, 1);
  receive_from_all(buffer, 1);
}

/// The receivers wait in a collective for the senders.
static void a_barrier_comes_first(char* buffer) {
  send_to_all(buffer, 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  receive_from_all(buffer, 0);
}

/// The receivers poll for something that does not come.
static void polls_come_first(char* buffer) {
  MPI_Request request;
  int done = 0;
  OK(MPI_Irecv(NULL, 0, MPI_BYTE, (rank + 1) % size, last_tag, MPI_COMM_WORLD, &request));
  send_to_all(buffer, 0);
  OK(MPI_Send(NULL, 0, MPI_BYTE, (rank + size - 1) % size, last_tag, MPI_COMM_WORLD));
  while (!done) OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  receive_from_all(buffer, 0);
}

/// Long messages, of which the middle one has gaps at its sender.
static void long_ones_come_first(void) {
  enum { longest = 1 << 20 };
  static const int lengths[] = {20000, longest, 100000, 300000, 64 << 10};
  char *out = malloc(2 * longest), *in = malloc(longest);
  MPI_Datatype pairs;
  OK(MPI_Type_vector(lengths[2] / 2, 2, 4, MPI_BYTE, &pairs));
  OK(MPI_Type_commit(&pairs));
  for (int i = 0; i < 5; ++i)
    for (int to = 0; to < size; ++to) {
      if (to == rank) continue;
      memset(out, rank * 5 + to + i, 2 * longest);
      OK(MPI_Send(out, i == 2 ? 1 : lengths[i], i == 2 ? pairs : MPI_BYTE, to, data_tag, MPI_COMM_WORLD));
    }
  for (int i = 0; i < 5; ++i)
    for (int from = size - 1; from >= 0; --from) {
      MPI_Status status;
      int length;
      if (from == rank) continue;
      memset(in, -1, longest);
      OK(MPI_Recv(in, longest, MPI_BYTE, from, data_tag, MPI_COMM_WORLD, &status));
      OK(MPI_Get_count(&status, MPI_BYTE, &length));
      CHECK(length == lengths[i]);
      for (int k = 0; k < longest; ++k) CHECK(in[k] == (char)(k < length ? from * 5 + rank + i : -1));
    }
  OK(MPI_Type_free(&pairs));
  free(out);
  free(in);
}

/// All wait until their buffered messages have left.
static void buffers_are_detached_first(char* buffer) {
  enum { longest = 200000 };
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const int bytes = count * (most + MPI_BSEND_OVERHEAD) + longest + MPI_BSEND_OVERHEAD;
  char *room = malloc((size_t)bytes), *long_one = malloc(longest);
  void* base;
  int length;
  OK(MPI_Buffer_attach(room, bytes));
  memset(long_one, rank, longest);
  OK(MPI_Bsend(long_one, longest, MPI_BYTE, right, odd_tag, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) {
    fill(buffer, rank, right, i);
    OK(MPI_Bsend(buffer, length_of(i), MPI_BYTE, right, data_tag, MPI_COMM_WORLD));
  }
  OK(MPI_Buffer_detach(&base, &length));
  CHECK(base == room && length == bytes);
  memset(room, 0, (size_t)bytes);
  for (int i = 0; i < count; ++i) receive_next(buffer, left, i);
  OK(MPI_Recv(long_one, longest, MPI_BYTE, left, odd_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int k = 0; k < longest; ++k) CHECK(long_one[k] == (char)left);
  free(long_one);
  free(room);
}

/// Even ranks complete nonblocking sends; odd ones receive the last message first, then the others backwards, with gaps.
static void requests_complete_first(void) {
  const int other = rank ^ 1;
  if (other >= size) return;
  MPI_Datatype vector, every_second; // 4 of 8 bytes, half a block
  OK(MPI_Type_vector(most / 16, 4, 8, MPI_BYTE, &vector));
  OK(MPI_Type_create_resized(vector, 0, most / 2, &every_second));
  OK(MPI_Type_commit(&every_second));
  OK(MPI_Type_free(&vector));
  MPI_Request* requests = malloc((size_t)count * sizeof *requests);
  char* blocks = calloc((size_t)count, most);
  for (int i = 0; i < count && rank % 2 == 0; ++i) {
    char* block = blocks + (size_t)i * most;
    memset(block, i + 1, most);
    OK(MPI_Isend(block, i % 3, every_second, other, first_of_many + i, MPI_COMM_WORLD, &requests[i]));
  }
  if (rank % 2 == 0) {
    OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    memset(blocks, 0, (size_t)count * most); // the buffers are the program's again
    OK(MPI_Send(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD));
  } else {
    OK(MPI_Recv(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = count; i-- > 0;) {
      MPI_Status status;
      int elements;
      memset(blocks, 0, most);
      OK(MPI_Recv(blocks, 2, every_second, MPI_ANY_SOURCE, first_of_many + i, MPI_COMM_WORLD, &status));
      OK(MPI_Get_count(&status, every_second, &elements));
      CHECK(elements == i % 3);
      for (int k = 0; k < most; ++k)
        CHECK(blocks[k] == (k < elements * most / 2 && k % 8 < 4 ? (char)(i + 1) : 0));
    }
  }
  free(blocks);
  free(requests);
  OK(MPI_Type_free(&every_second));
}

/// Synchronous sends do not complete before their receives. Some messages are matched by probes before they are received.
static void synchronous_sends_wait(char* buffer) {
  const int other = rank ^ 1;
  if (other >= size) return;
  if (rank % 2 == 0) {
    MPI_Request synchronous, long_synchronous;
    int done;
    char* const long_one = calloc(most, 4);
    OK(MPI_Issend(long_one, 4 * most, MPI_BYTE, other, odd_tag, MPI_COMM_WORLD, &long_synchronous));
    OK(MPI_Issend(&rank, 1, MPI_INT, other, odd_tag, MPI_COMM_WORLD, &synchronous));
    for (int i = 0; i < count; ++i) {
      fill(buffer, rank, other, i);
      OK(MPI_Send(buffer, length_of(i), MPI_BYTE, other, data_tag, MPI_COMM_WORLD));
    }
    OK(MPI_Send(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Test(&synchronous, &done, MPI_STATUS_IGNORE));
    CHECK(!done);
    OK(MPI_Test(&long_synchronous, &done, MPI_STATUS_IGNORE));
    CHECK(!done);
    OK(MPI_Send(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD));
    OK(MPI_Wait(&synchronous, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&long_synchronous, MPI_STATUS_IGNORE));
    free(long_one);
  } else {
    int number;
    OK(MPI_Recv(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    usleep(5000); // and then this rank waits in vain for longer than it waits before it takes long messages
    OK(MPI_Iprobe(other, last_tag, MPI_COMM_WORLD, &number, MPI_STATUS_IGNORE));
    usleep(5000);
    OK(MPI_Iprobe(other, last_tag, MPI_COMM_WORLD, &number, MPI_STATUS_IGNORE));
    for (int i = 0; i < count; ++i) {
      if (i % 4 != 0) {
        receive_next(buffer, other, i);
        continue;
      }
      MPI_Message message;
      MPI_Status status;
      OK(MPI_Mprobe(other, data_tag, MPI_COMM_WORLD, &message, &status));
      OK(MPI_Get_count(&status, MPI_BYTE, &number));
      CHECK(number == length_of(i));
      OK(MPI_Mrecv(buffer, most, MPI_BYTE, &message, MPI_STATUS_IGNORE));
      check(buffer, other, rank, i);
    }
    OK(MPI_Send(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    char* const long_one = malloc(4 * most);
    OK(MPI_Recv(long_one, 4 * most, MPI_BYTE, other, odd_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    free(long_one);
    OK(MPI_Recv(&number, 1, MPI_INT, other, odd_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(number == other);
  }
}

/// One process serves others that keep asking, while the end depends on a message behind many that it does not receive yet.
static void requests_keep_coming(char* buffer) {
  enum { ask_tag = 4, answer_tag = 5 };
  int over = 0;
  if (size < 3) return;
  if (rank == 0) {
    for (int left = size - 2; left > 0;) {
      int last;
      MPI_Status status;
      OK(MPI_Recv(&last, 1, MPI_INT, MPI_ANY_SOURCE, ask_tag, MPI_COMM_WORLD, &status));
      over |= last;
      if (last) continue;
      OK(MPI_Send(&over, 1, MPI_INT, status.MPI_SOURCE, answer_tag, MPI_COMM_WORLD));
      left -= over;
    }
    for (int i = 0; i < count; ++i) receive_next(buffer, 1, i);
  } else if (rank == 1) {
    for (int i = 0; i < count; ++i) {
      fill(buffer, 1, 0, i);
      OK(MPI_Send(buffer, length_of(i), MPI_BYTE, 0, data_tag, MPI_COMM_WORLD));
    }
    over = 1;
    OK(MPI_Send(&over, 1, MPI_INT, 0, ask_tag, MPI_COMM_WORLD));
  } else {
    while (!over) {
      OK(MPI_Send(&over, 1, MPI_INT, 0, ask_tag, MPI_COMM_WORLD));
      OK(MPI_Recv(&over, 1, MPI_INT, 0, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
}

/// With little space (NEAR_UNEXPECTED), a message that does not fit waits, and shorter ones do not.
static void one_does_not_fit(void) {
  enum { longest = 2 << 20, shorter = 100000 };
  const int other = rank ^ 1;
  if (other >= size) return;
  char* const long_one = calloc(longest, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank % 2 == 0) {
    OK(MPI_Isend(long_one, longest, MPI_BYTE, other, odd_tag, MPI_COMM_WORLD, &request));
    usleep(5000);
    OK(MPI_Send(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD));
  } else {
    OK(MPI_Recv(NULL, 0, MPI_BYTE, other, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Recv(long_one, longest, MPI_BYTE, other, odd_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Send(long_one, shorter, MPI_BYTE, other, odd_tag, MPI_COMM_WORLD));
  OK(MPI_Recv(long_one, shorter, MPI_BYTE, other, odd_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  free(long_one);
}

/// What is cancelled is not received, and the rest is.
static void some_are_cancelled(void) {
  const int other = rank ^ 1;
  if (other >= size) return;
  int* numbers = malloc((size_t)count * sizeof *numbers);
  MPI_Request* requests = malloc((size_t)count * sizeof *requests);
  if (rank % 2 == 0) {
    int sent = 0;
    for (int i = 0; i < count; ++i) {
      numbers[i] = i;
      OK(MPI_Isend(&numbers[i], 1, MPI_INT, other, data_tag, MPI_COMM_WORLD, &requests[i]));
      if (i % 5 == 0) OK(MPI_Cancel(&requests[i]));
    }
    for (int i = 0; i < count; ++i) {
      MPI_Status status;
      int cancelled;
      OK(MPI_Wait(&requests[i], &status));
      OK(MPI_Test_cancelled(&status, &cancelled));
      sent += !cancelled;
      CHECK(!cancelled || i % 5 == 0);
    }
    OK(MPI_Send(&sent, 1, MPI_INT, other, last_tag, MPI_COMM_WORLD));
  } else {
    int sent, last = -1;
    OK(MPI_Recv(&sent, 1, MPI_INT, other, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < sent; ++i) {
      int number;
      OK(MPI_Recv(&number, 1, MPI_INT, other, data_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(number > last);
      last = number;
    }
  }
  free(requests);
  free(numbers);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  if (argc > 1) count = atoi(argv[1]);
  char* buffer = malloc(most);
  const int with_space = count > 0;
  for (int round = 0; round < 3; ++round) {
    one_does_not_fit();
    if (!with_space) continue;
    all_send_first(buffer);
    a_barrier_comes_first(buffer);
    polls_come_first(buffer);
    long_ones_come_first();
    buffers_are_detached_first(buffer);
    requests_complete_first();
    synchronous_sends_wait(buffer);
    requests_keep_coming(buffer);
    some_are_cancelled();
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  free(buffer);
  OK(MPI_Finalize());
  return 0;
}
