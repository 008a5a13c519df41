// Random one-sided operations against a model, on windows of each kind and in epochs of each kind.
//
// Every rank draws the operations of all ranks from the same generator, so it knows what its own memory must become, and
// what its own gets and fetches must return. Each origin has slots of its own in every target's memory: a slot is put,
// read, or accumulated during an epoch. All ranks count in the cells in front of the slots.
//
// Arguments: seed, rounds.
#include "check.h"

#include <stdint.h>
#include <string.h>

enum { slots = 6, cells = 64, counters = 4, most = 40, large = 200000, most_ranks = 16 };

static int rank, size;
static MPI_Win win;
static int dynamic; // displacements are addresses
static MPI_Aint base_of[most_ranks];

static int64_t*
    memory; // counters, then `slots` slots of `cells` cells for each origin, then `large` cells for each
static int64_t* model; // what the slots of this rank as a target must be
static int64_t* mine;  // what the slots of this rank as an origin are at each target
static int64_t* bulk;  // what a large operation moves

static size_t slot_at(int origin, int slot) {
  return counters + ((size_t)origin * slots + (size_t)slot) * cells;
}
static size_t large_at(int origin) { return slot_at(size, 0) + (size_t)origin * large; }
static size_t all_cells(void) { return large_at(size); }

static uint64_t state;
static uint64_t draw(uint64_t below) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (x ^ (x >> 31)) % below;
}

enum mode { putting, reading, accumulating, modes };
enum call { accumulate, get_accumulate, fetch, swap, calls };

struct step {
  int target, slot, shape, origin_shape, count, first;
  enum mode mode;
  enum call call;
  int operation, by_request, flush;
  int64_t values[most], compare;
};

enum { operation_count = 12 };
static MPI_Op operations[operation_count]; // set in main()

static int64_t combined(int operation, int64_t in, int64_t old) {
  switch (operation) {
  case 0: return (int64_t)((uint64_t)in + (uint64_t)old);
  case 1: return (int64_t)((uint64_t)in * (uint64_t)old);
  case 2: return in < old ? in : old;
  case 3: return in > old ? in : old;
  case 4: return in & old;
  case 5: return in | old;
  case 6: return in ^ old;
  case 7: return in && old;
  case 8: return in || old;
  case 9: return !in != !old;
  case 10: return in;
  default: return old;
  }
}

// The cell of element i within a slot: contiguous, every second one, backwards, or in an order without a pattern.
static int cell_of(const struct step* step, int i) {
  switch (step->shape) {
  case 0: return step->first + i;
  case 1: return step->first + 2 * i;
  case 2: return cells - 1 - step->first - i;
  default: return (step->first + i * 37) % cells;
  }
}

static void draw_step(struct step* step, uint64_t seed, int round, int origin, int index) {
  state = seed * 1000003 + (uint64_t)round * 8191 + (uint64_t)origin * 131 + (uint64_t)index * 7;
  step->target = (int)draw((uint64_t)size);
  step->slot = (int)draw(slots);
  // The mode belongs to the slot for the whole round.
  const uint64_t here = state;
  state = seed + (uint64_t)round * 77 + (uint64_t)origin * 1009 + (uint64_t)step->target * 31 +
          (uint64_t)step->slot;
  step->mode = (enum mode)draw(modes);
  state = here;
  step->shape = (int)draw(4);
  step->origin_shape = (int)draw(2);
  step->count = 1 + (int)draw(step->shape == 1 ? 20 : most);
  step->first =
      (int)draw((uint64_t)(step->shape == 1 ? cells - 2 * step->count + 1 : cells - step->count + 1));
  step->call = (enum call)draw(calls);
  if (step->mode == accumulating && step->call >= fetch) step->count = 1;
  step->operation = (int)draw(operation_count);
  if (step->mode == accumulating && step->call == accumulate && step->operation == 11) step->operation = 0;
  step->by_request = (int)draw(2);
  step->flush = draw(3) == 0;
  for (int i = 0; i < step->count; ++i) step->values[i] = (int64_t)draw(1u << 20) - (1 << 19);
  step->compare = (int64_t)draw(2); // whether the swap is to succeed
}

// Applies a step to a slot; `seen` receives what was there.
static void apply(const struct step* step, int64_t* slot, int64_t* seen) {
  for (int i = 0; i < step->count; ++i) {
    int64_t* cell = &slot[cell_of(step, i)];
    seen[i] = *cell;
    if (step->mode == putting)
      *cell = step->values[i];
    else if (step->mode == accumulating && step->call == swap)
      *cell = step->compare ? step->values[i] : *cell;
    else if (step->mode == accumulating)
      *cell = combined(step->operation, step->values[i], *cell);
  }
}

static MPI_Aint displacement(int target, size_t cell) {
  return dynamic ? MPI_Aint_add(base_of[target], (MPI_Aint)(cell * sizeof *memory)) : (MPI_Aint)cell;
}

// The datatype of the step's cells in a slot.
static MPI_Datatype make_type(const struct step* step) {
  MPI_Datatype type;
  int places[most];
  for (int i = 0; i < step->count; ++i) places[i] = cell_of(step, i);
  OK(MPI_Type_create_indexed_block(step->count, 1, places, MPI_INT64_T, &type));
  OK(MPI_Type_commit(&type));
  return type;
}

struct pending {
  int64_t out[2 * most], in[2 * most], expected[most];
  struct step step;
  MPI_Request request;
  int reads;
};

// Begins one of this rank's steps.
static void perform(struct pending* pending, int passive) {
  const struct step* step = &pending->step;
  const int every = step->origin_shape == 0 ? 1 : 2; // every or every second element of the origin's buffer
  MPI_Datatype there = make_type(step), here;
  OK(MPI_Type_vector(step->count, 1, every, MPI_INT64_T, &here));
  OK(MPI_Type_commit(&here));
  for (int i = 0; i < step->count; ++i)
    pending->out[every * i] = step->values[i], pending->in[every * i] = -1;
  const MPI_Aint at = displacement(step->target, slot_at(rank, step->slot));
  const MPI_Aint one = displacement(step->target, slot_at(rank, step->slot) + (size_t)cell_of(step, 0));
  MPI_Op op = operations[step->operation];
  const int request = passive && step->by_request;
  MPI_Request* made = &pending->request;
  *made = MPI_REQUEST_NULL;
  pending->reads = step->mode == reading || (step->mode == accumulating && step->call != accumulate);
  if (step->mode == putting) {
    if (request)
      OK(MPI_Rput(pending->out, 1, here, step->target, at, 1, there, win, made));
    else
      OK(MPI_Put(pending->out, 1, here, step->target, at, 1, there, win));
  } else if (step->mode == reading) {
    if (request)
      OK(MPI_Rget(pending->in, 1, here, step->target, at, 1, there, win, made));
    else
      OK(MPI_Get(pending->in, 1, here, step->target, at, 1, there, win));
  } else if (step->call == accumulate) {
    if (request)
      OK(MPI_Raccumulate(pending->out, 1, here, step->target, at, 1, there, op, win, made));
    else
      OK(MPI_Accumulate(pending->out, 1, here, step->target, at, 1, there, op, win));
  } else if (step->call == get_accumulate) {
    if (request)
      OK(MPI_Rget_accumulate(pending->out, 1, here, pending->in, 1, here, step->target, at, 1, there, op, win,
                             made));
    else
      OK(MPI_Get_accumulate(pending->out, 1, here, pending->in, 1, here, step->target, at, 1, there, op,
                            win));
  } else if (step->call == fetch) {
    OK(MPI_Fetch_and_op(pending->out, pending->in, MPI_INT64_T, step->target, one, op, win));
  } else {
    const int64_t compare = step->compare ? pending->expected[0] : ~pending->expected[0];
    OK(MPI_Compare_and_swap(pending->out, &compare, pending->in, MPI_INT64_T, step->target, one, win));
  }
  OK(MPI_Type_free(&there));
  OK(MPI_Type_free(&here));
}

static void check_read(const struct pending* pending) {
  const int every = pending->step.origin_shape == 0 ? 1 : 2;
  for (int i = 0; pending->reads && i < pending->step.count; ++i)
    CHECK(pending->in[every * i] == pending->expected[i]);
}

enum epoch { fence, general, exclusive, together, all, unchecked, epochs };
enum { steps = 24 };

static void begin(enum epoch epoch, int target, MPI_Group world) {
  switch (epoch) {
  case fence: OK(MPI_Win_fence(0, win)); return;
  case general:
    OK(MPI_Win_post(world, 0, win));
    OK(MPI_Win_start(world, 0, win));
    return;
  case exclusive: OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win)); return;
  case together: OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win)); return;
  default: OK(MPI_Win_lock_all(epoch == unchecked ? MPI_MODE_NOCHECK : 0, win));
  }
}

static void end(enum epoch epoch, int target) {
  switch (epoch) {
  case fence: OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win)); return;
  case general:
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    return;
  case exclusive:
  case together: OK(MPI_Win_unlock(target, win)); return;
  default: OK(MPI_Win_unlock_all(win));
  }
}

static int64_t counted, swapped; // how often each rank has counted, and how often by swapping

// Counts in cells that all ranks count in: by an accumulate, by fetching, and by swapping until it succeeds.
static void count(int passive) {
  static const int64_t one = 1;
  static int64_t seen, next, expected; // static, as the operations may be under way when this returns
  const int target = (int)(counted % size);
  ++counted;
  OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, displacement(target, 0), 1, MPI_INT64_T, MPI_SUM, win));
  OK(MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, target, displacement(target, 1), MPI_SUM, win));
  if (!passive) return;
  OK(MPI_Win_flush(target, win));
  CHECK(seen >= 0 && seen < counted * size);
  ++swapped;
  do {
    expected = seen;
    next = expected + 1;
    OK(MPI_Compare_and_swap(&next, &expected, &seen, MPI_INT64_T, target, displacement(target, 2), win));
    OK(MPI_Win_flush(target, win));
  } while (seen != expected);
}

// One operation of several megabytes, with gaps at the target or without.
static void move_much(uint64_t seed, int round) {
  state = seed + (uint64_t)round * 13;
  const int shift = 1 + (int)draw((uint64_t)size), kind = (int)draw(3), gaps = (int)draw(2);
  const int target = (rank + shift) % size, origin = (rank + size - shift % size) % size, number = large / 2;
  MPI_Datatype there;
  OK(MPI_Type_vector(number, 1, 1 + gaps, MPI_INT64_T, &there));
  OK(MPI_Type_commit(&there));
  for (int i = 0; i < number; ++i) bulk[i] = (int64_t)rank * 1000000 + i + round;
  const MPI_Aint at = displacement(target, large_at(rank));
  int64_t* own = memory + large_at(origin);
  for (int i = 0; i < large; ++i) own[i] = i;
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
  if (kind == 0) OK(MPI_Put(bulk, number, MPI_INT64_T, target, at, 1, there, win));
  if (kind == 1) OK(MPI_Accumulate(bulk, number, MPI_INT64_T, target, at, 1, there, MPI_SUM, win));
  if (kind == 2) OK(MPI_Get(bulk, number, MPI_INT64_T, target, at, 1, there, win));
  OK(MPI_Win_unlock(target, win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < number; ++i) {
    const int cell = i * (1 + gaps);
    const int64_t sent = (int64_t)origin * 1000000 + i + round;
    CHECK(own[cell] == (kind == 0 ? sent : kind == 1 ? sent + cell : cell));
    if (gaps) CHECK(own[cell + 1] == cell + 1);
    if (kind == 2) CHECK(bulk[i] == cell);
  }
  OK(MPI_Type_free(&there));
}

static void play(uint64_t seed, int round) {
  static struct pending pending[steps];
  static int has_been_put[most_ranks][slots];
  memset(has_been_put, 0, sizeof has_been_put);
  state = seed + (uint64_t)round;
  const enum epoch epoch = (enum epoch)draw(epochs);
  const int passive = epoch >= exclusive, one_by_one = epoch == exclusive || epoch == together;
  MPI_Group world;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  for (int pass = 0; pass < (one_by_one ? size : 1); ++pass) {
    const int only = (rank + pass) % size;
    int number = 0;
    begin(epoch, only, world);
    for (int index = 0; index < steps; ++index) {
      struct pending* each = &pending[number];
      draw_step(&each->step, seed, round, rank, index);
      const struct step* step = &each->step;
      if (one_by_one && step->target != only) continue;
      // A slot may be put again when the first put is complete.
      int* put_before = &has_been_put[step->target][step->slot];
      if (step->mode == putting && *put_before) {
        if (!passive) continue;
        OK(MPI_Win_flush(step->target, win));
      }
      *put_before = 1;
      apply(step, mine + (size_t)step->target * slot_at(size, 0) + slot_at(rank, step->slot), each->expected);
      perform(each, passive);
      ++number;
      if (passive && step->flush) OK(MPI_Win_flush(step->target, win));
    }
    if (!one_by_one) count(passive);
    for (int i = 0; i < number; ++i) OK(MPI_Wait(&pending[i].request, MPI_STATUS_IGNORE));
    end(epoch, only);
    for (int i = 0; i < number; ++i) check_read(&pending[i]);
  }
  OK(MPI_Group_free(&world));

  // What the others have done to this rank's memory.
  for (int origin = 0; origin < size; ++origin) {
    memset(has_been_put, 0, sizeof has_been_put);
    for (int index = 0; index < steps; ++index) {
      struct step step;
      int64_t seen[most];
      draw_step(&step, seed, round, origin, index);
      int* put_before = &has_been_put[step.target][step.slot];
      if (step.mode == putting && *put_before && !passive) continue;
      *put_before = 1;
      if (step.target == rank) apply(&step, model + slot_at(origin, step.slot), seen);
    }
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  const size_t bytes = (slot_at(size, 0) - counters) * sizeof *memory;
  OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0,
                  win)); // private and public copies are one, but others may still compare
  CHECK(memcmp(memory + counters, model + counters, bytes) == 0);
  OK(MPI_Win_unlock(rank, win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (round % 4 == 0) move_much(seed, round);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(argc == 3 && size <= most_ranks);
  const uint64_t seed = strtoull(argv[1], NULL, 10);
  const int rounds = atoi(argv[2]);
  const MPI_Op ops[operation_count] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_BAND,    MPI_BOR,
                                       MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_REPLACE, MPI_NO_OP};
  for (int i = 0; i < operation_count; ++i) operations[i] = ops[i];
  const size_t bytes = all_cells() * sizeof *memory;
  const size_t slot_bytes = slot_at(size, 0) * sizeof *memory;
  CHECK((model = malloc(slot_bytes)) != NULL && (mine = malloc(slot_bytes * (size_t)size)) != NULL);
  CHECK((bulk = malloc(large * sizeof *bulk)) != NULL);
  for (int kind = 0; kind < 3; ++kind) {
    dynamic = kind == 2;
    counted = swapped = 0;
    memset(model, 0, slot_bytes);
    memset(mine, 0, slot_bytes * (size_t)size);
    if (kind == 1) {
      OK(MPI_Win_allocate((MPI_Aint)bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    } else {
      CHECK((memory = calloc(1, bytes)) != NULL);
      if (dynamic) {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, memory, (MPI_Aint)bytes));
      } else {
        OK(MPI_Win_create(memory, (MPI_Aint)bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
      }
    }
    MPI_Aint base;
    OK(MPI_Get_address(memory, &base));
    OK(MPI_Allgather(&base, 1, MPI_AINT, base_of, 1, MPI_AINT, MPI_COMM_WORLD));
    for (int round = 0; round < rounds; ++round) play(seed + (uint64_t)kind, round);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int64_t sums[3] = {0, 0, 0};
    OK(MPI_Allreduce(memory, sums, 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sums[0] == counted * size && sums[1] == counted * size && sums[2] == swapped * size);
    OK(MPI_Win_free(&win));
    if (kind != 1) free(memory);
  }
  free(model);
  free(mine);
  free(bulk);
  OK(MPI_Finalize());
  return 0;
}
