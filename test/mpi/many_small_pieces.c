// Puts, gets and accumulates of many small pieces of private memory: every piece arrives, and nothing between
// them changes. Failing calls of getpgid() mark the beginning and the end of rank 0's transfers for a tracer.
#include "check.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { pieces = 10007, marker = 0x7ea12345, guard = 0x5a5a5a5a };

static int rank, size;

struct Form {
  int block, stride; // of integers
};

static MPI_Datatype type_of(struct Form form) {
  MPI_Datatype type;
  OK(MPI_Type_vector(pieces, form.block, form.stride, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  return type;
}

static size_t room(struct Form form) { return (size_t)pieces * (size_t)form.stride; }
static int* element(int* memory, struct Form form, int i) {
  return memory + (size_t)(i / form.block) * (size_t)form.stride + i % form.block;
}

static int* filled(struct Form form, int first) {
  int* memory = malloc(room(form) * sizeof(int));
  CHECK(memory != NULL);
  for (size_t i = 0; i < room(form); ++i) memory[i] = guard;
  for (int i = 0; i < pieces * form.block; ++i) *element(memory, form, i) = first + i;
  return memory;
}

static void check(int* memory, struct Form form, int first, int step) {
  for (int i = 0; i < pieces * form.block; ++i) {
    CHECK(*element(memory, form, i) == first + step * i);
    *element(memory, form, i) = guard;
  }
  for (size_t i = 0; i < room(form); ++i) CHECK(memory[i] == guard);
}

// Transfers between rank 0 and the last rank; either side may have more pieces.
static void transfer(struct Form here, struct Form there) {
  const int target = size - 1, numbers = pieces * there.block;
  int* exposed = filled(there, 1000);
  MPI_Win win;
  OK(MPI_Win_create(exposed, (MPI_Aint)(room(there) * sizeof(int)), sizeof(int), MPI_INFO_NULL,
                    MPI_COMM_WORLD, &win));
  MPI_Datatype mine = type_of(here), its = type_of(there);
  const int copies = there.block / here.block;
  // The origin has `copies` elements of its type, one after the other.
  int* origin = malloc(room(here) * (size_t)copies * sizeof(int));
  CHECK(origin != NULL);
  MPI_Datatype spaced;
  OK(MPI_Type_create_resized(mine, 0, (MPI_Aint)(room(here) * sizeof(int)), &spaced));
  OK(MPI_Type_commit(&spaced));
  for (int each = 0; each < copies; ++each) {
    int* part = filled(here, each * pieces * here.block);
    memcpy(origin + (size_t)each * room(here), part, room(here) * sizeof(int));
    free(part);
  }
  OK(MPI_Win_fence(0, win));
  if (rank == 0) {
    getpgid(marker);
    OK(MPI_Accumulate(origin, copies, spaced, target, 0, 1, its, MPI_SUM, win));
    getpgid(marker);
  }
  OK(MPI_Win_fence(0, win));
  if (rank == target) {
    for (int i = 0; i < numbers; ++i) CHECK(*element(exposed, there, i) == 1000 + 2 * i);
  }
  OK(MPI_Win_fence(0, win));
  if (rank == 0) {
    getpgid(marker);
    OK(MPI_Put(origin, copies, spaced, target, 0, 1, its, win));
    getpgid(marker);
    for (size_t i = 0; i < room(here) * (size_t)copies; ++i) origin[i] = guard;
  }
  OK(MPI_Win_fence(0, win));
  if (rank == 0) {
    getpgid(marker);
    OK(MPI_Get(origin, copies, spaced, target, 0, 1, its, win));
    getpgid(marker);
  }
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  if (rank == 0)
    for (int each = 0; each < copies; ++each)
      check(origin + (size_t)each * room(here), here, each * pieces * here.block, 1);
  if (rank == target) check(exposed, there, 0, 1);
  OK(MPI_Type_free(&mine));
  OK(MPI_Type_free(&its));
  OK(MPI_Type_free(&spaced));
  OK(MPI_Win_free(&win));
  free(origin);
  free(exposed);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const struct Form close_by = {1, 2}, apart = {1, 200}, wide = {6, 9}, contiguous = {1, 1};
  const struct Form forms[] = {close_by, apart, wide, contiguous};
  for (int here = 0; here < 4; ++here)
    for (int there = 0; there < 4; ++there)
      if (forms[there].block % forms[here].block == 0) transfer(forms[here], forms[there]);
  OK(MPI_Finalize());
  return 0;
}
