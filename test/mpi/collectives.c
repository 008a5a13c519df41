// Every blocking collective, compared with the expected values: short and long vectors, every root,
// MPI_IN_PLACE, a datatype with gaps, and an operation that is not commutative.
#include "check.h"
#include <string.h>

static int rank, size;

static int value(int from, int index) { return from * 1000003 + index * 7 + 1; }

static int* filled(int count) {
  int* made = malloc(sizeof(int) * (size_t)(count + 1));
  for (int i = 0; i < count; ++i) made[i] = value(rank, i);
  return made;
}

static int* blank(int count) {
  int* made = malloc(sizeof(int) * (size_t)(count + 1));
  memset(made, 0x55, sizeof(int) * (size_t)(count + 1));
  return made;
}

static unsigned sum_up_to(int last, int index) {
  unsigned sum = 0;
  for (int from = 0; from <= last; ++from) sum += (unsigned)value(from, index);
  return sum;
}

static void moving(int count) {
  for (int root = 0; root < size; ++root) {
    int* buffer = filled(count);
    OK(MPI_Bcast(buffer, count, MPI_INT, root, MPI_COMM_WORLD));
    for (int i = 0; i < count; ++i) CHECK(buffer[i] == value(root, i));
    free(buffer);

    int *own = filled(count), *all = blank(count * size);
    OK(MPI_Gather(own, count, MPI_INT, rank == root ? all : NULL, count, MPI_INT, root, MPI_COMM_WORLD));
    if (rank == root)
      for (int i = 0; i < count * size; ++i) CHECK(all[i] == value(i / count, i % count));
    memset(own, 0, sizeof(int) * (size_t)count);
    OK(MPI_Scatter(all, count, MPI_INT, rank == root ? MPI_IN_PLACE : own, count, MPI_INT, root,
                   MPI_COMM_WORLD));
    if (rank != root)
      for (int i = 0; i < count; ++i) CHECK(own[i] == value(rank, i));
    free(own);
    free(all);
  }

  int *own = filled(count), *all = blank(count * size);
  OK(MPI_Allgather(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < count * size; ++i) CHECK(all[i] == value(i / count, i % count));
  int* again = blank(count * size);
  memcpy(again + count * rank, own, sizeof(int) * (size_t)count);
  OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, again, count, MPI_INT, MPI_COMM_WORLD));
  CHECK(memcmp(all, again, sizeof(int) * (size_t)(count * size)) == 0);

  int* out = filled(count * size);
  OK(MPI_Alltoall(out, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < count * size; ++i) CHECK(all[i] == value(i / count, count * rank + i % count));
  OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, count, MPI_INT, MPI_COMM_WORLD));
  CHECK(memcmp(all, out, sizeof(int) * (size_t)(count * size)) == 0);
  free(own);
  free(all);
  free(again);
  free(out);
}

/// Rank r contributes (r + 1) * unit elements; blocks lie in reverse order with one element between them.
static void varying(int unit) {
  int *counts = malloc(sizeof(int) * (size_t)size), *at = malloc(sizeof(int) * (size_t)size), total = 0;
  for (int r = size - 1; r >= 0; --r) {
    counts[r] = (r + 1) * unit;
    at[r] = total;
    total += counts[r] + 1;
  }
  int *own = filled(counts[rank]), *all = blank(total);
  OK(MPI_Allgatherv(own, counts[rank], MPI_INT, all, counts, at, MPI_INT, MPI_COMM_WORLD));
  for (int r = 0; r < size; ++r) {
    for (int i = 0; i < counts[r]; ++i) CHECK(all[at[r] + i] == value(r, i));
    CHECK(all[at[r] + counts[r]] == 0x55555555);
  }
  const int root = size / 2;
  int* gathered = blank(total);
  OK(MPI_Gatherv(own, counts[rank], MPI_INT, gathered, counts, at, MPI_INT, root, MPI_COMM_WORLD));
  if (rank == root) CHECK(memcmp(all, gathered, sizeof(int) * (size_t)total) == 0);
  int* back = blank(counts[rank]);
  OK(MPI_Scatterv(gathered, counts, at, MPI_INT, back, counts[rank], MPI_INT, root, MPI_COMM_WORLD));
  CHECK(memcmp(own, back, sizeof(int) * (size_t)counts[rank]) == 0);

  // Rank r sends (r + to) % 3 units to rank `to`.
  int *sends = malloc(sizeof(int) * (size_t)size), *from = malloc(sizeof(int) * (size_t)size);
  int *receives = malloc(sizeof(int) * (size_t)size), *into = malloc(sizeof(int) * (size_t)size);
  int leaving = 0, arriving = 0;
  for (int r = 0; r < size; ++r) {
    sends[r] = receives[r] = (rank + r) % 3 * unit;
    from[r] = leaving;
    leaving += sends[r];
    into[r] = arriving;
    arriving += receives[r];
  }
  int *out = blank(leaving), *in = blank(arriving);
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < sends[r]; ++i) out[from[r] + i] = value(rank, 100 * r + i);
  OK(MPI_Alltoallv(out, sends, from, MPI_INT, in, receives, into, MPI_INT, MPI_COMM_WORLD));
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < receives[r]; ++i) CHECK(in[into[r] + i] == value(r, 100 * rank + i));
  MPI_Datatype* types = malloc(sizeof(MPI_Datatype) * (size_t)size);
  int *from_bytes = malloc(sizeof(int) * (size_t)size), *into_bytes = malloc(sizeof(int) * (size_t)size);
  for (int r = 0; r < size; ++r) {
    types[r] = MPI_INT;
    from_bytes[r] = from[r] * (int)sizeof(int);
    into_bytes[r] = into[r] * (int)sizeof(int);
  }
  int* typed = blank(arriving);
  OK(MPI_Alltoallw(out, sends, from_bytes, types, typed, receives, into_bytes, types, MPI_COMM_WORLD));
  CHECK(memcmp(in, typed, sizeof(int) * (size_t)arriving) == 0);
  OK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, out, receives, into_bytes, types, MPI_COMM_WORLD));
  CHECK(memcmp(in, out, sizeof(int) * (size_t)arriving) == 0);

  // Rank r receives r % 3 units of the sum.
  int sum_total = 0, first = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = r % 3 * unit;
    if (r < rank) first += counts[r];
    sum_total += counts[r];
  }
  int *vector = filled(sum_total), *part = blank(counts[rank]);
  OK(MPI_Reduce_scatter(vector, part, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < counts[rank]; ++i) CHECK((unsigned)part[i] == sum_up_to(size - 1, first + i));
  OK(MPI_Reduce_scatter(MPI_IN_PLACE, vector, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < counts[rank]; ++i) CHECK((unsigned)vector[i] == sum_up_to(size - 1, first + i));
  int* lists[] = {counts, at,  own, all,        gathered,   back,  sends,  from, receives,
                  into,   out, in,  from_bytes, into_bytes, typed, vector, part};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) free(lists[i]);
  free(types);
}

static void reducing(int count) {
  int *own = filled(count), *result = blank(count);
  for (int root = 0; root < size; ++root) {
    OK(MPI_Reduce(own, rank == root ? result : NULL, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
    if (rank == root)
      for (int i = 0; i < count; ++i) CHECK((unsigned)result[i] == sum_up_to(size - 1, i));
  }
  OK(MPI_Allreduce(own, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK((unsigned)result[i] == sum_up_to(size - 1, i));
  OK(MPI_Allreduce(own, result, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK(result[i] == value(size - 1, i));
  OK(MPI_Scan(own, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK((unsigned)result[i] == sum_up_to(rank, i));
  OK(MPI_Exscan(own, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  if (rank > 0)
    for (int i = 0; i < count; ++i) CHECK((unsigned)result[i] == sum_up_to(rank - 1, i));
  memcpy(result, own, sizeof(int) * (size_t)count);
  OK(MPI_Allreduce(MPI_IN_PLACE, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK((unsigned)result[i] == sum_up_to(size - 1, i));
  int *vector = filled(count * size), *part = blank(count);
  OK(MPI_Reduce_scatter_block(vector, part, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < count; ++i) CHECK((unsigned)part[i] == sum_up_to(size - 1, count * rank + i));
  free(own);
  free(result);
  free(vector);
  free(part);
}

/// The function x -> a x + b, with a gap between a and b; `in` is applied before `inout`.
typedef struct {
  unsigned a, hole, b;
} affine;
static void compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  affine *first = in, *then = inout;
  for (int i = 0; i < *length; ++i) {
    then[i].b += first[i].b * then[i].a;
    then[i].a *= first[i].a;
  }
}

static void in_rank_order(int count) {
  MPI_Op op;
  OK(MPI_Op_create(compose, 0, &op));
  int lengths[] = {1, 1}, places[] = {0, 2};
  MPI_Datatype pair, type;
  OK(MPI_Type_indexed(2, lengths, places, MPI_UNSIGNED, &pair));
  OK(MPI_Type_create_resized(pair, 0, sizeof(affine), &type));
  OK(MPI_Type_commit(&type));
  affine *own = malloc(sizeof *own * (size_t)count), *result = malloc(sizeof *own * (size_t)count);
  for (int i = 0; i < count; ++i) {
    own[i] = (affine){(unsigned)(2 * rank + 3), 7, (unsigned)(rank * 31 + i)};
    result[i] = (affine){0, 0xabcd, 0};
  }
  affine expected = {1, 0, 0}, before = {1, 0, 0};
  for (int mode = 0; mode < 3; ++mode) {
    if (mode == 0) OK(MPI_Allreduce(own, result, count, type, op, MPI_COMM_WORLD));
    if (mode == 1) OK(MPI_Scan(own, result, count, type, op, MPI_COMM_WORLD));
    if (mode == 2) OK(MPI_Reduce(own, result, count, type, op, size - 1, MPI_COMM_WORLD));
    if (mode == 2 && rank != size - 1) break;
    for (int i = 0; i < count; ++i) {
      expected = before;
      for (int r = 0; r <= (mode == 1 ? rank : size - 1); ++r) {
        unsigned a = (unsigned)(2 * r + 3), b = (unsigned)(r * 31 + i);
        expected = (affine){expected.a * a, 0, expected.b * a + b};
      }
      CHECK(result[i].a == expected.a && result[i].b == expected.b && result[i].hole == 0xabcd);
    }
  }
  OK(MPI_Op_free(&op));
  OK(MPI_Type_free(&pair));
  OK(MPI_Type_free(&type));
  free(own);
  free(result);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int counts[] = {1, 13, 1000, 40000};
  for (int i = 0; i < 4; ++i) {
    moving(counts[i]);
    reducing(counts[i]);
    in_rank_order(counts[i]);
    if (i < 3) varying(counts[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
  OK(MPI_Finalize());
  return 0;
}
