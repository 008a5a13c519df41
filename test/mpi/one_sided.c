// Puts, gets and accumulates in epochs of every kind, on windows of every flavour.
#include "check.h"

#include <string.h>

enum { cells = 64 };

static int rank, size, right, left;
static int* memory; // of the window: `cells` ints
static MPI_Aint origin_of_right;
static MPI_Win win;

enum flavour { created, of_alloc_mem, allocated, shared, dynamic, flavours };
enum epoch { fence, general, exclusive, together, all, unchecked, epochs };

static void make(enum flavour flavour) {
  const MPI_Aint bytes = cells * (MPI_Aint)sizeof *memory;
  MPI_Aint origin = 0;
  switch (flavour) {
  case created:
    memory = malloc((size_t)bytes);
    OK(MPI_Win_create(memory, bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    break;
  case of_alloc_mem:
    OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory));
    OK(MPI_Win_create(memory, bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    break;
  case allocated:
    OK(MPI_Win_allocate(bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    break;
  case shared:
    OK(MPI_Win_allocate_shared(bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    break;
  default:
    memory = malloc((size_t)bytes);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, memory, bytes));
    OK(MPI_Get_address(memory, &origin));
  }
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Sendrecv(&origin, 1, MPI_AINT, left, 0, &origin_of_right, 1, MPI_AINT, right, 0, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
}

static void unmake(enum flavour flavour) {
  if (flavour == dynamic) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, memory));
  }
  OK(MPI_Win_free(&win));
  if (flavour == created || flavour == dynamic) free(memory);
  if (flavour == of_alloc_mem) OK(MPI_Free_mem(memory));
}

// The displacement of the right neighbour's cell i.
static MPI_Aint at(enum flavour flavour, int i) {
  return flavour == dynamic ? origin_of_right + i * (MPI_Aint)sizeof *memory : i;
}

static void begin(enum epoch epoch) {
  MPI_Group world, to, from;
  OK(MPI_Barrier(MPI_COMM_WORLD));
  switch (epoch) {
  case fence: OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win)); return;
  case general:
    OK(MPI_Win_get_group(win, &world));
    OK(MPI_Group_incl(world, 1, &left, &from));
    OK(MPI_Group_incl(world, 1, &right, &to));
    OK(MPI_Win_post(from, 0, win));
    OK(MPI_Win_start(to, 0, win));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&from));
    OK(MPI_Group_free(&to));
    return;
  case exclusive: OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win)); return;
  case together: OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win)); return;
  case unchecked: OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, MPI_MODE_NOCHECK, win)); return;
  default: OK(MPI_Win_lock_all(0, win));
  }
}

static void end(enum epoch epoch, int test) {
  int over = 0;
  switch (epoch) {
  case fence: OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win)); return;
  case general:
    OK(MPI_Win_complete(win));
    if (!test) OK(MPI_Win_wait(win));
    while (test && !over) OK(MPI_Win_test(win, &over));
    return;
  case exclusive:
  case together:
  case unchecked: OK(MPI_Win_unlock(right, win)); break;
  default: OK(MPI_Win_unlock_all(win));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD)); // the target reads its memory after this
}

static void look(int i, int expected) {
  if (memory[i] != expected)
    fprintf(stderr, "rank %d: cell %d is %d, not %d\n", rank, i, memory[i], expected);
  CHECK(memory[i] == expected);
}

static void move(enum flavour flavour, enum epoch epoch) {
  for (int i = 0; i < cells; ++i) memory[i] = 1000 * rank + i;
  int out[cells], in[cells], old[cells];
  MPI_Request request;
  for (int i = 0; i < cells; ++i) out[i] = -(1000 * rank + i), in[i] = old[i] = 7;

  begin(epoch);
  OK(MPI_Put(out, 8, MPI_INT, right, at(flavour, 0), 8, MPI_INT, win));
  if (epoch >= exclusive) {
    OK(MPI_Rput(out + 8, 2, MPI_INT, right, at(flavour, 8), 2, MPI_INT, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(request == MPI_REQUEST_NULL);
  } else {
    OK(MPI_Put(out + 8, 2, MPI_INT, right, at(flavour, 8), 2, MPI_INT, win));
  }
  OK(MPI_Get(in, 4, MPI_INT, right, at(flavour, 60), 4, MPI_INT, win));
  OK(MPI_Put(out, 0, MPI_INT, right, at(flavour, 0), 0, MPI_INT, win));
  OK(MPI_Put(out, 1, MPI_INT, MPI_PROC_NULL, 12345, 1, MPI_INT, win));
  OK(MPI_Get(in, 1, MPI_INT, MPI_PROC_NULL, 12345, 1, MPI_INT, win));
  end(epoch, 0);
  for (int i = 0; i < 10; ++i) look(i, -(1000 * left + i));
  look(10, 1000 * rank + 10);
  for (int i = 0; i < 4; ++i) CHECK(in[i] == 1000 * right + 60 + i);

  // Contiguous elements go to every second element there, and come back to every third one here.
  MPI_Datatype second, third;
  OK(MPI_Type_vector(10, 1, 2, MPI_INT, &second));
  OK(MPI_Type_vector(10, 1, 3, MPI_INT, &third));
  OK(MPI_Type_commit(&second));
  OK(MPI_Type_commit(&third));
  begin(epoch);
  OK(MPI_Put(out + 10, 10, MPI_INT, right, at(flavour, 20), 1, second, win));
  end(epoch, 1);
  begin(epoch);
  if (epoch >= exclusive) {
    OK(MPI_Rget(in, 1, third, right, at(flavour, 20), 1, second, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_Get(in, 1, third, right, at(flavour, 20), 1, second, win));
  }
  end(epoch, 1);
  for (int i = 0; i < 10; ++i) {
    look(20 + 2 * i, -(1000 * left + 10 + i));
    if (i < 9) look(21 + 2 * i, 1000 * rank + 21 + 2 * i);
    CHECK(in[3 * i] == out[10 + i]);
    if (i < 9 && 3 * i + 1 >= 4) CHECK(in[3 * i + 1] == 7);
  }

  begin(epoch);
  OK(MPI_Accumulate(out + 50, 5, MPI_INT, right, at(flavour, 50), 5, MPI_INT, MPI_SUM, win));
  OK(MPI_Accumulate(out + 55, 1, MPI_INT, right, at(flavour, 55), 1, MPI_INT, MPI_REPLACE, win));
  OK(MPI_Get_accumulate(out + 56, 2, MPI_INT, old, 2, MPI_INT, right, at(flavour, 56), 2, MPI_INT, MPI_MAX,
                        win));
  OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, old + 2, 2, MPI_INT, right, at(flavour, 58), 2, MPI_INT,
                        MPI_NO_OP, win));
  if (epoch >= exclusive) {
    OK(MPI_Raccumulate(out, 1, second, right, at(flavour, 0), 1, second, MPI_PROD, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rget_accumulate(out + 60, 1, MPI_INT, old + 4, 1, MPI_INT, right, at(flavour, 60), 1, MPI_INT,
                           MPI_BXOR, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_Accumulate(out, 1, second, right, at(flavour, 0), 1, second, MPI_PROD, win));
    OK(MPI_Get_accumulate(out + 60, 1, MPI_INT, old + 4, 1, MPI_INT, right, at(flavour, 60), 1, MPI_INT,
                          MPI_BXOR, win));
  }
  OK(MPI_Fetch_and_op(out + 61, old + 5, MPI_INT, right, at(flavour, 61), MPI_MIN, win));
  OK(MPI_Fetch_and_op(NULL, old + 6, MPI_INT, right, at(flavour, 62), MPI_NO_OP, win));
  int expected = 1000 * right + 63, wanted = 1000 * right;
  OK(MPI_Compare_and_swap(out + 63, &expected, old + 7, MPI_INT, right, at(flavour, 63), win));
  OK(MPI_Compare_and_swap(out + 62, &wanted, old + 8, MPI_INT, right, at(flavour, 62), win));
  end(epoch, 0);
  for (int i = 50; i < 55; ++i) look(i, 1000 * rank + i - (1000 * left + i));
  look(55, -(1000 * left + 55));
  for (int i = 56; i < 60; ++i) {
    look(i, 1000 * rank + i); // the greater value
    CHECK(old[i - 56] == 1000 * right + i);
  }
  for (int i = 0; i < 10; ++i) {
    int was = 2 * i < 10 ? -(1000 * left + 2 * i) : 1000 * rank + 2 * i;
    look(2 * i, was * -(1000 * left + 2 * i));
  }
  look(60, (1000 * rank + 60) ^ -(1000 * left + 60));
  look(61, -(1000 * left + 61));
  look(62, 1000 * rank + 62);
  look(63, -(1000 * left + 63));
  CHECK(old[4] == 1000 * right + 60 && old[5] == 1000 * right + 61 && old[6] == 1000 * right + 62);
  CHECK(old[7] == 1000 * right + 63 && old[8] == 1000 * right + 62);
  OK(MPI_Type_free(&second));
  OK(MPI_Type_free(&third));
}

// More than a page, with gaps, and with a type that has a negative stride.
static void large_and_odd(enum flavour kind) {
  enum { many = 40000 };
  double* base = NULL;
  MPI_Win its;
  const MPI_Aint bytes = many * (MPI_Aint)sizeof *base;
  if (kind == created) {
    base = malloc((size_t)bytes);
    OK(MPI_Win_create(base, bytes, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &its));
  } else {
    OK(MPI_Win_allocate(bytes, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &its));
  }
  OK(MPI_Win_set_errhandler(its, MPI_ERRORS_RETURN));
  for (int i = 0; i < many; ++i) base[i] = -1;
  MPI_Datatype gaps, back;
  OK(MPI_Type_vector(many / 4, 3, 4, MPI_DOUBLE, &gaps));
  OK(MPI_Type_commit(&gaps));
  double* out = malloc((size_t)bytes);
  for (int i = 0; i < many; ++i) out[i] = rank * 1e6 + i;
  OK(MPI_Win_fence(0, its));
  OK(MPI_Put(out, many / 4 * 3, MPI_DOUBLE, right, 0, 1, gaps, its));
  OK(MPI_Win_fence(0, its));
  for (int i = 0, from = 0; i < many; ++i) CHECK(base[i] == (i % 4 == 3 ? -1 : left * 1e6 + from++));
  OK(MPI_Win_fence(0, its));
  OK(MPI_Accumulate(out, many / 4 * 3, MPI_DOUBLE, right, 0, 1, gaps, MPI_SUM, its));
  OK(MPI_Win_fence(0, its));
  for (int i = 0, from = 0; i < many; ++i) CHECK(base[i] == (i % 4 == 3 ? -1 : 2 * (left * 1e6 + from++)));
  // Negative stride: element i lies i * 8 bytes before the displacement.
  OK(MPI_Type_create_hvector(10, 1, -(MPI_Aint)sizeof *base, MPI_DOUBLE, &back));
  OK(MPI_Type_commit(&back));
  OK(MPI_Win_fence(0, its));
  OK(MPI_Put(out, 10, MPI_DOUBLE, right, 9, 1, back, its));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(out, 10, MPI_DOUBLE, right, 8, 1, back, its));
  OK(MPI_Win_fence(0, its));
  for (int i = 0; i < 10; ++i) CHECK(base[9 - i] == left * 1e6 + i);
  // Pairs.
  struct pair {
    double value;
    int place;
  } mine = {rank, rank}, *pairs = (struct pair*)base;
  pairs[3].value = -1;
  pairs[3].place = -1;
  OK(MPI_Win_fence(0, its));
  for (int target = 0; target < size; ++target)
    OK(MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, target, 6, 1, MPI_DOUBLE_INT, MPI_MAXLOC, its));
  OK(MPI_Win_fence(0, its));
  CHECK(pairs[3].value == size - 1 && pairs[3].place == size - 1);
  OK(MPI_Win_free(&its));
  OK(MPI_Type_free(&gaps));
  OK(MPI_Type_free(&back));
  free(out);
  if (kind == created) free(base);
}

// MPI_Win_post does not wait for its origins, even if they have not received earlier messages.
static void post_does_not_wait(void) {
  enum { many = 400 };
  static int out[many], in[many];
  MPI_Request requests[many];
  MPI_Group world, to, from;
  make(allocated);
  for (int i = 0; i < many; ++i) {
    out[i] = 1000 * rank + i;
    OK(MPI_Isend(&out[i], 1, MPI_INT, left, 9, MPI_COMM_WORLD, &requests[i]));
  }
  OK(MPI_Win_get_group(win, &world));
  OK(MPI_Group_incl(world, 1, &left, &from));
  OK(MPI_Group_incl(world, 1, &right, &to));
  OK(MPI_Win_post(from, 0, win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_start(to, 0, win));
  OK(MPI_Put(&rank, 1, MPI_INT, right, 3, 1, MPI_INT, win));
  OK(MPI_Win_complete(win));
  OK(MPI_Win_wait(win));
  look(3, left);
  for (int i = 0; i < many; ++i) {
    OK(MPI_Recv(&in[i], 1, MPI_INT, right, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in[i] == 1000 * right + i);
  }
  OK(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&from));
  OK(MPI_Group_free(&to));
  unmake(allocated);
}

// Ranks on several machines share no memory.
static int share_memory(void) {
  MPI_Comm machine;
  int here = 0;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine));
  OK(MPI_Comm_size(machine, &here));
  OK(MPI_Comm_free(&machine));
  if (here == size) return 1;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_RMA_SHARED, MPI_Win_allocate_shared(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
  return 0;
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  for (int flavour = 0; flavour < flavours; ++flavour) {
    if (flavour == shared && !share_memory()) continue;
    make(flavour);
    for (int epoch = 0; epoch < epochs; ++epoch) move(flavour, epoch);
    unmake(flavour);
  }
  post_does_not_wait();
  large_and_odd(created);
  large_and_odd(allocated);
  OK(MPI_Finalize());
  return 0;
}
