// Dynamic windows with thousands of attached pieces: attached in any order, adjacent ones used as one,
// accesses to gaps refused, pieces accessed while their owner attaches and detaches others.
#include "machines_of_ranks.h"

#include <stdint.h>

enum { pieces = 6000, step = 4001, ints = 8 }; // the step and the number of pieces have no common divisor

static int rank, size, right;
static int reads, of_each;    // how often the first piece is read, and which pieces afterwards
static int* memory;           // for each piece two runs of `ints`; the second may stay unattached
static MPI_Aint right_memory; // address of the neighbour's memory
static MPI_Win win;

static MPI_Aint at_right(int piece, int element) {
  return right_memory + ((MPI_Aint)piece * 2 * ints + element) * (MPI_Aint)sizeof(int);
}

static void tell_memory(int* own) {
  MPI_Aint address;
  OK(MPI_Get_address(own, &address));
  OK(MPI_Sendrecv(&address, 1, MPI_AINT, (rank + size - 1) % size, 0, &right_memory, 1, MPI_AINT, right, 0,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void all_at_once(void) {
  OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
  for (int i = 0; i < pieces; i += 7) {
    int value[ints] = {0};
    OK(MPI_Get(value, ints, MPI_INT, right, at_right(i, 0), ints, MPI_INT, win));
    OK(MPI_Win_flush(right, win));
    CHECK(value[0] == right * 31 + i && value[ints - 1] == value[0]);
    FAILS(MPI_ERR_RMA_RANGE, MPI_Get(value, 1, MPI_INT, right, at_right(i, ints), 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Get(value, ints, MPI_INT, right, at_right(i, 1), ints, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Get(value, 1, MPI_INT, right, at_right(i, 0) - 1, 1, MPI_INT, win));
  }
  OK(MPI_Win_unlock(right, win));
}

// Reads through one datatype with absolute addresses, as with MPI_BOTTOM; the gaps are not attached.
static void scattered(int target, int* origin_of_pieces) {
  enum { chosen = 500 };
  int lengths[chosen], values[chosen];
  MPI_Aint places[chosen];
  MPI_Aint base = right_memory;
  if (target == rank) OK(MPI_Get_address(origin_of_pieces, &base));
  for (int i = 0; i < chosen; ++i) {
    lengths[i] = 1;
    places[i] = base + ((MPI_Aint)(i * 11) * 2 * ints + i % ints) * (MPI_Aint)sizeof(int);
    values[i] = -1;
  }
  MPI_Datatype type;
  OK(MPI_Type_create_hindexed(chosen, lengths, places, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
  OK(MPI_Get(values, chosen, MPI_INT, target, 0, 1, type, win));
  OK(MPI_Win_unlock(target, win));
  for (int i = 0; i < chosen; ++i) CHECK(values[i] == target * 31 + i * 11);
  OK(MPI_Type_free(&type));
}

static void thousands(int shareable) {
  const size_t bytes = (size_t)pieces * 2 * ints * sizeof(int);
  if (shareable)
    OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory));
  else
    CHECK((memory = malloc(bytes)) != NULL);
  for (int i = 0; i < pieces * 2 * ints; ++i) memory[i] = rank * 31 + i / (2 * ints);
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  for (int i = 0; i < pieces; ++i)
    OK(MPI_Win_attach(win, memory + (size_t)(i * step % pieces) * 2 * ints, ints * sizeof(int)));
  for (int i = 0; i < pieces; i += 97) {
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, memory + (size_t)i * 2 * ints + ints - 1, 8));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, memory + (size_t)i * 2 * ints, 1));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, memory + (size_t)i * 2 * ints + 1));
  }
  tell_memory(memory);
  all_at_once();
  scattered(right, memory);
  scattered(rank, memory);
  OK(MPI_Barrier(MPI_COMM_WORLD));

  // The neighbour reads the first piece while most of the others are detached and attached.
  if (rank % 2 == 0) {
    for (int i = 1; i < pieces; ++i) OK(MPI_Win_detach(win, memory + (size_t)(i * step % pieces) * 2 * ints));
    for (int i = 1; i < pieces; i += 2)
      OK(MPI_Win_attach(win, memory + (size_t)i * 2 * ints, ints * sizeof(int)));
  } else {
    OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
    for (int i = 0; i < reads; ++i) {
      int value = -1;
      OK(MPI_Get(&value, 1, MPI_INT, right, at_right(0, 3), 1, MPI_INT, win));
      OK(MPI_Win_flush(right, win));
      CHECK(value == right * 31);
    }
    OK(MPI_Win_unlock(right, win));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  const int right_has_odd = right % 2 == 0;
  OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
  for (int i = 1; i < pieces; i += of_each) {
    int value = -1;
    if (right_has_odd && i % 2 == 0) {
      FAILS(MPI_ERR_RMA_RANGE, MPI_Get(&value, 1, MPI_INT, right, at_right(i, 0), 1, MPI_INT, win));
      continue;
    }
    OK(MPI_Get(&value, 1, MPI_INT, right, at_right(i, ints - 1), 1, MPI_INT, win));
    OK(MPI_Win_flush(right, win));
    CHECK(value == right * 31 + i);
  }
  OK(MPI_Win_unlock(right, win));
  OK(MPI_Win_free(&win));
  if (shareable)
    OK(MPI_Free_mem(memory));
  else
    free(memory);
}

// Every byte is attached, in pieces: accesses may cross the borders between pieces.
static void neighbours(int shareable) {
  enum { parts = 700, part = 40, all = parts * part };
  char* own;
  if (shareable)
    OK(MPI_Alloc_mem(all, MPI_INFO_NULL, &own));
  else
    CHECK((own = malloc(all)) != NULL);
  memset(own, rank, all);
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  for (int i = parts; i-- > 0;) OK(MPI_Win_attach(win, own + i * part, part));
  tell_memory((int*)own);
  char* got = malloc(all);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Get(got, all, MPI_BYTE, right, right_memory, all, MPI_BYTE, win));
  OK(MPI_Win_fence(0, win));
  for (int i = 0; i < all; ++i) CHECK(got[i] == (char)right);
  memset(got, 100, 2);
  OK(MPI_Put(got, 2, MPI_BYTE, right, right_memory + part - 1, 2, MPI_BYTE, win));
  OK(MPI_Win_fence(0, win));
  CHECK(own[part - 2] == (char)rank && own[part - 1] == 100 && own[part] == 100 &&
        own[part + 1] == (char)rank);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_detach(win, own + part));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(got, 2, MPI_BYTE, right, right_memory + part - 1, 2, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Get(got, all, MPI_BYTE, right, right_memory, all, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Get(got, 1, MPI_BYTE, right, right_memory + all, 1, MPI_BYTE, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  OK(MPI_Win_free(&win));
  free(got);
  if (shareable)
    OK(MPI_Free_mem(own));
  else
    free(own);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  right = (rank + 1) % size;
  const int remote = on_several_machines();
  reads = remote ? 2000 : 20000;
  of_each = remote ? 7 : 1;
  for (int shareable = 0; shareable < 2; ++shareable) {
    neighbours(shareable);
    thousands(shareable);
  }
  OK(MPI_Finalize());
  return 0;
}
