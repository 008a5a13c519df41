// Blocking messages with gaps, in slots, in packets and longer, from each kind of layout into each kind, with messages that are
// shorter than the receive, and some that are too long for it.
#include "check.h"

#include <string.h>

enum { most = 40000, rounds = 3 };

static int rank;
static int out[4 * most], in[4 * most]; // the widest layout has two gaps for each int
static int places[most];

/// `count` ints with gaps. places[i]: where the i-th one lies.
typedef MPI_Datatype make_type(int count);

static MPI_Datatype committed(MPI_Datatype type) {
  OK(MPI_Type_commit(&type));
  return type;
}
static MPI_Datatype make_strided(int count) {
  MPI_Datatype type;
  OK(MPI_Type_vector(count, 1, 3, MPI_INT, &type));
  for (int i = 0; i < count; ++i) places[i] = 3 * i;
  return committed(type);
}
static MPI_Datatype make_rows(int count) {
  if (count % 4 != 0) return make_strided(count);
  MPI_Datatype row, type;
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &row));
  OK(MPI_Type_create_hvector(count / 2, 1, 5 * (MPI_Aint)sizeof(int), row, &type));
  OK(MPI_Type_free(&row));
  for (int i = 0; i < count; ++i) places[i] = 5 * (i / 2) + 2 * (i % 2);
  return committed(type);
}
/// Blocks of one and two, some of which are neighbours.
static MPI_Datatype make_listed(int count) {
  static int lengths[most], starts[most];
  int blocks = 0, at = 0;
  for (int i = 0; i < count; ++blocks) {
    int length = 1 + (blocks % 3 == 0 && i + 1 < count);
    lengths[blocks] = length;
    starts[blocks] = at;
    for (int j = 0; j < length; ++j) places[i++] = at++;
    at += blocks % 2;
  }
  MPI_Datatype type;
  OK(MPI_Type_indexed(blocks, lengths, starts, MPI_INT, &type));
  return committed(type);
}
static MPI_Datatype make_packed(int count) {
  MPI_Datatype type;
  OK(MPI_Type_contiguous(count, MPI_INT, &type));
  for (int i = 0; i < count; ++i) places[i] = i;
  return committed(type);
}
static make_type* const kinds[] = {make_strided, make_rows, make_listed, make_packed};
enum { count_kinds = sizeof kinds / sizeof *kinds };

/// `count` ints in so many elements.
static MPI_Datatype make(make_type* kind, int count, int elements) {
  MPI_Datatype type = kind(count / elements);
  MPI_Aint lb, extent;
  OK(MPI_Type_get_extent(type, &lb, &extent));
  for (int i = count / elements; i < count; ++i)
    places[i] = places[i - count / elements] + (int)(extent / (MPI_Aint)sizeof(int));
  return type;
}

static int value(int round, int i) { return round * 1000003 + i * 7919 + 1; }

static void send(int round, MPI_Datatype type, int elements, int count) {
  memset(out, 0, sizeof out);
  for (int i = 0; i < count; ++i) out[places[i]] = value(round, i);
  if (round % 2)
    OK(MPI_Send_c(out, elements, type, 1, round, MPI_COMM_WORLD));
  else
    OK(MPI_Send(out, elements, type, 1, round, MPI_COMM_WORLD));
}

/// A message of `sent` ints into room for `count`.
static void receive(int round, MPI_Datatype type, int elements, int count, int sent) {
  memset(in, 0x55, sizeof in);
  const int gap = in[0];
  MPI_Status status;
  if (round % 2)
    OK(MPI_Recv_c(in, elements, type, 0, round, MPI_COMM_WORLD, &status));
  else
    OK(MPI_Recv(in, elements, type, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == round);
  int got, each = count / elements;
  OK(MPI_Get_elements(&status, type, &got));
  CHECK(got == sent);
  OK(MPI_Get_count(&status, type, &got));
  CHECK(got == (sent % each == 0 ? sent / each : MPI_UNDEFINED));
  int next = 0;
  for (int i = 0; i < 4 * most; ++i) {
    if (next < sent && places[next] == i) {
      CHECK(in[i] == value(round, next));
      ++next;
    } else {
      CHECK(in[i] == gap);
    }
  }
  CHECK(next == sent);
}

static void exchange(int count, int elements, make_type* from, make_type* to) {
  for (int round = 0; round < rounds; ++round) {
    // The last message is shorter than the receive.
    int is_short = round == 2, sent = is_short ? count - 1 : count;
    if (rank == 0) {
      MPI_Datatype type = make(from, sent, is_short ? 1 : elements);
      send(round, type, is_short ? 1 : elements, sent);
      OK(MPI_Type_free(&type));
    } else {
      MPI_Datatype type = make(to, count, elements);
      receive(round, type, elements, count, sent);
      OK(MPI_Type_free(&type));
    }
  }
}

/// Nothing, of a datatype with gaps, and of one without data.
static void exchange_nothing(void) {
  MPI_Datatype some = make_strided(4), none;
  OK(MPI_Type_vector(0, 1, 2, MPI_INT, &none));
  OK(MPI_Type_commit(&none));
  for (int round = 0; round < 4; ++round) {
    MPI_Datatype type = round % 2 ? none : some;
    int count = round % 2, got = -1;
    MPI_Status status;
    if (rank == 0) {
      OK(MPI_Send(out, count, type, 1, round, MPI_COMM_WORLD));
    } else {
      in[0] = 7;
      OK(MPI_Recv(in, 1, round < 2 ? type : some, 0, round, MPI_COMM_WORLD, &status));
      OK(MPI_Get_elements(&status, some, &got));
      CHECK(got == 0 && in[0] == 7 && status.MPI_TAG == round);
    }
  }
  OK(MPI_Type_free(&some));
  OK(MPI_Type_free(&none));
}

/// The receive is an error, and writes nothing behind its buffer; the next message arrives.
static void is_too_long(int count) {
  MPI_Datatype type = make_strided(count);
  if (rank == 0) {
    send(0, type, 1, count);
    send(1, type, 1, count);
  } else {
    MPI_Datatype room = make_strided(count - 1);
    memset(in, 0x55, sizeof in);
    const int gap = in[0];
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(in, 1, room, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in[3 * (count - 1)] == gap);
    OK(MPI_Type_free(&room));
    receive(1, type, 1, count, count);
  }
  OK(MPI_Type_free(&type));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  static const int counts[] = {2, 3, 8, 16, 64, 1000, 4000, most};
  for (int at = 0; at < (int)(sizeof counts / sizeof *counts) && rank < 2; ++at)
    for (int from = 0; from < count_kinds; ++from)
      for (int to = 0; to < count_kinds; ++to)
        for (int elements = 1; elements <= 2; ++elements)
          if (counts[at] % elements == 0) exchange(counts[at], elements, kinds[from], kinds[to]);
  if (rank < 2) exchange_nothing();
  for (int at = 0; at < (int)(sizeof counts / sizeof *counts) && rank < 2; ++at) is_too_long(counts[at]);
  OK(MPI_Finalize());
  return 0;
}
