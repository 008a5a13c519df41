// If MPI_Parrived reports a partition, all its data is in the buffer, however the buffer is cut: also if cuts
// go through elements of a type with gaps and the parts become ready in any order.
//
// Runs `rounds` random exchanges between neighbours and compares each partition as soon as it has arrived.
// The first exchanges are fixed: 33 parts against 17, also with the last part first.
#include "check.h"

#include <string.h>

static unsigned state = 12345; // the same on every rank
static unsigned any(unsigned limit) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % limit;
}

static int common_multiple(int a, int b) {
  int x = a, y = b;
  while (y != 0) {
    int rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

/// 0 .. n-1 in the order in which parts become ready.
static void arrange(int* order, int n, int how) {
  for (int i = 0; i < n; ++i) order[i] = how == 1 ? n - 1 - i : i;
  if (how == 2)
    for (int i = n - 1; i > 0; --i) {
      int other = (int)any((unsigned)i + 1), kept = order[i];
      order[i] = order[other];
      order[other] = kept;
    }
}

/// `width` ints followed by `gap` ints that must not be written.
static MPI_Datatype spaced(int width, int gap) {
  MPI_Datatype element, type;
  OK(MPI_Type_contiguous(width, MPI_INT, &element));
  OK(MPI_Type_create_resized(element, 0, (MPI_Aint)sizeof(int) * (width + gap), &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Type_free(&element));
  return type;
}

struct Side {
  int parts, width, gap; ///< number of partitions; layout of an element
};

/// Both sides have parts * count * width = `total` ints, a multiple of parts * width of either side.
static void exchange(struct Side sending, struct Side receiving, int total, int how, int starts) {
  int rank, size;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const int out_step = sending.width + sending.gap, in_step = receiving.width + receiving.gap;
  const int out_ints = total / sending.width * out_step, in_ints = total / receiving.width * in_step;
  const int piece = total / receiving.parts; // ints of a partition
  int* out = malloc(sizeof(int) * (size_t)out_ints);
  int* in = malloc(sizeof(int) * (size_t)in_ints);
  int* order = malloc(sizeof(int) * (size_t)sending.parts);
  char* seen = malloc((size_t)receiving.parts);
  MPI_Datatype out_type = spaced(sending.width, sending.gap),
               in_type = spaced(receiving.width, receiving.gap);
  MPI_Request send, receive;
  OK(MPI_Psend_init(out, sending.parts, total / sending.parts / sending.width, out_type, right, 3,
                    MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(in, receiving.parts, piece / receiving.width, in_type, left, 3, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &receive));
  OK(MPI_Type_free(&out_type));
  OK(MPI_Type_free(&in_type));
  for (int start = 0; start < starts; ++start) {
    for (int i = 0; i < out_ints; ++i) out[i] = -7;
    for (int i = 0; i < total; ++i)
      out[i / sending.width * out_step + i % sending.width] = i + rank * 31 + start;
    for (int i = 0; i < in_ints; ++i) in[i] = -1;
    memset(seen, 0, (size_t)receiving.parts);
    arrange(order, sending.parts, how);
    OK(MPI_Start(&receive));
    OK(MPI_Start(&send));
    int arrived = 0, marked = 0;
    while (arrived < receiving.parts) {
      if (marked < sending.parts) OK(MPI_Pready(order[marked++], send));
      for (int p = receiving.parts - 1; p >= 0; --p) {
        int flag;
        if (seen[p]) continue;
        OK(MPI_Parrived(receive, p, &flag));
        if (!flag) continue;
        seen[p] = 1;
        ++arrived;
        for (int i = p * piece; i < (p + 1) * piece; ++i)
          CHECK(in[i / receiving.width * in_step + i % receiving.width] == i + left * 31 + start);
      }
    }
    while (marked < sending.parts) OK(MPI_Pready(order[marked++], send));
    MPI_Status status;
    OK(MPI_Wait(&receive, &status));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    int count;
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == total && status.MPI_SOURCE == left && status.MPI_TAG == 3);
    for (int i = 0; i < in_ints; ++i) // the gaps
      CHECK(i % in_step < receiving.width || in[i] == -1);
  }
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
  free(out);
  free(in);
  free(order);
  free(seen);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  const int rounds = argc > 1 ? atoi(argv[1]) : 60;
  for (int how = 0; how < 3; ++how) {
    exchange((struct Side){33, 1, 0}, (struct Side){17, 3, 1}, 1122, how, 3);
    exchange((struct Side){17, 3, 1}, (struct Side){33, 2, 1}, 1122, how, 3);
  }
  for (int round = 0; round < rounds; ++round) {
    struct Side sending = {(int)any(20) + 1, (int)any(4) + 1, (int)any(3)};
    struct Side receiving = {(int)any(20) + 1, (int)any(4) + 1, (int)any(3)};
    int total = common_multiple(sending.parts * sending.width, receiving.parts * receiving.width);
    total *= 2000 / total + 1; // usually cuts lie inside elements
    exchange(sending, receiving, total, (int)any(3), 2);
  }
  // Partitions without data arrive as well.
  MPI_Datatype nothing;
  MPI_Request send, receive;
  int rank, size, flag = 0;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
  OK(MPI_Type_commit(&nothing));
  OK(MPI_Psend_init(&flag, 2, 1, nothing, (rank + 1) % size, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(&flag, 3, 1, nothing, (rank + size - 1) % size, 4, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &receive));
  OK(MPI_Type_free(&nothing));
  OK(MPI_Start(&receive));
  OK(MPI_Start(&send));
  OK(MPI_Pready_range(0, 1, send));
  for (int p = 0; p < 3; ++p)
    for (int here = 0; !here;) OK(MPI_Parrived(receive, p, &here));
  OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
  OK(MPI_Finalize());
  return 0;
}
