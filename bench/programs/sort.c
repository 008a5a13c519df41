// Sample sort: each rank sorts its keys and takes samples at regular distances. Rank 0 gathers and sorts the samples and
// broadcasts splitters, by which every rank cuts its keys into one run for each rank. The lengths of the runs travel by
// MPI_Alltoall, the runs by MPI_Alltoallv; each rank merges what it has received. Source: Shi, Schaeffer, "Parallel
// sorting by regular sampling", 1992.
//
// The result is checked for its order, within and between ranks, and for the number and the sum of all keys. Alone, a
// rank merges the runs that it has received last.
#include "program.h"

enum { all_keys = 1 << 15, samples_of_rank = 32 };

typedef uint32_t key;

struct runs { // one for each rank
  int *count, *begin;
};

struct sorter {
  struct world world;
  int count, received; // keys of this rank, before and after
  key *keys, *sorted, *spare, *arrived, *result;
  key *samples, *splitters; // splitters[i] is above the keys of rank i and not above those of rank i + 1
  struct runs to, from;
  int* merged; // of each run
};

/// Sorts `from` into `to`, a byte of the keys at a time. `from` remains as it is.
static void sort_by_bytes(const key* from, key* to, key* spare, int count) {
  for (int shift = 0; shift < 32; shift += 8) {
    int places[256] = {0}, place = 0;
    for (int i = 0; i < count; ++i) ++places[from[i] >> shift & 255];
    for (int byte = 0; byte < 256; ++byte) {
      int of_byte = places[byte];
      places[byte] = place;
      place += of_byte;
    }
    key* out = shift / 8 % 2 == 0 ? spare : to; // the last pass fills `to`
    for (int i = 0; i < count; ++i) out[places[from[i] >> shift & 255]++] = from[i];
    from = out;
  }
}

static int compare_keys(const void* left, const void* right) {
  key a = *(const key*)left, b = *(const key*)right;
  return (a > b) - (a < b);
}

static void choose_splitters(struct sorter* sorter, bool alone) {
  int ranks = sorter->world.size;
  key mine[samples_of_rank];
  for (int i = 0; i < samples_of_rank; ++i) mine[i] = sorter->sorted[sorter->count / samples_of_rank * i];
  if (!alone)
    MPI_Gather(mine, samples_of_rank, MPI_UINT32_T, sorter->samples, samples_of_rank, MPI_UINT32_T, 0,
               MPI_COMM_WORLD);
  if (sorter->world.rank == 0) {
    qsort(sorter->samples, (size_t)(ranks * samples_of_rank), sizeof(key), compare_keys);
    for (int rank = 1; rank < ranks; ++rank)
      sorter->splitters[rank - 1] = sorter->samples[rank * samples_of_rank];
  }
  if (!alone) MPI_Bcast(sorter->splitters, ranks - 1, MPI_UINT32_T, 0, MPI_COMM_WORLD);
}

/// How many of the sorted keys are below `splitter`.
static int count_below(const key* keys, int count, key splitter) {
  int low = 0, high = count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (keys[middle] < splitter)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void cut_runs(struct sorter* sorter) {
  int begin = 0, last = sorter->world.size - 1;
  for (int rank = 0; rank <= last; ++rank) {
    int end =
        rank == last ? sorter->count : count_below(sorter->sorted, sorter->count, sorter->splitters[rank]);
    sorter->to.begin[rank] = begin;
    sorter->to.count[rank] = end - begin;
    begin = end;
  }
}

static void exchange_runs(struct sorter* sorter, bool alone) {
  struct runs *to = &sorter->to, *from = &sorter->from;
  if (!alone) MPI_Alltoall(to->count, 1, MPI_INT, from->count, 1, MPI_INT, MPI_COMM_WORLD);
  sorter->received = 0;
  for (int rank = 0; rank < sorter->world.size; ++rank) {
    from->begin[rank] = sorter->received;
    sorter->received += from->count[rank];
  }
  if (!alone)
    MPI_Alltoallv(sorter->sorted, to->count, to->begin, MPI_UINT32_T, sorter->arrived, from->count,
                  from->begin, MPI_UINT32_T, MPI_COMM_WORLD);
}

/// The run that has the least of the keys which are not merged yet.
static int next_run(const struct sorter* sorter) {
  int next = -1;
  key least = 0;
  for (int rank = 0; rank < sorter->world.size; ++rank) {
    if (sorter->merged[rank] == sorter->from.count[rank]) continue;
    key first = sorter->arrived[sorter->from.begin[rank] + sorter->merged[rank]];
    if (next >= 0 && first >= least) continue;
    next = rank;
    least = first;
  }
  return next;
}

static void merge_runs(struct sorter* sorter) {
  memset(sorter->merged, 0, (size_t)sorter->world.size * sizeof(int));
  for (int i = 0; i < sorter->received; ++i) {
    int run = next_run(sorter);
    sorter->result[i] = sorter->arrived[sorter->from.begin[run] + sorter->merged[run]++];
  }
}

static void run(void* state, bool alone) {
  struct sorter* sorter = state;
  sort_by_bytes(sorter->keys, sorter->sorted, sorter->spare, sorter->count);
  choose_splitters(sorter, alone);
  cut_runs(sorter);
  exchange_runs(sorter, alone);
  merge_runs(sorter);
}

/// The last key of the ranks before this one; 0 if they have none.
static key last_key_before(const struct sorter* sorter) {
  key last = sorter->received > 0 ? sorter->result[sorter->received - 1] : 0, before = 0;
  MPI_Exscan(&last, &before, 1, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
  return sorter->world.rank == 0 ? 0 : before;
}

static bool right(void* state) {
  const struct sorter* sorter = state;
  key before = last_key_before(sorter);
  uint64_t difference[2] = {(uint64_t)(sorter->received - sorter->count),
                            0}; // of the numbers and of the sums
  bool ordered = true;
  for (int i = 0; i < sorter->received; ++i) {
    ordered &= before <= sorter->result[i];
    before = sorter->result[i];
    difference[1] += sorter->result[i];
  }
  for (int i = 0; i < sorter->count; ++i) difference[1] -= sorter->keys[i];
  MPI_Allreduce(MPI_IN_PLACE, difference, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return ordered && difference[0] == 0 && difference[1] == 0;
}

static key* new_keys(int count) { return allocate((size_t)count, sizeof(key)); }
static int* new_counts(struct world world) { return allocate((size_t)world.size, sizeof(int)); }

static void set_up(struct sorter* sorter, struct world world) {
  sorter->world = world;
  sorter->count = all_keys / world.size;
  sorter->keys = new_keys(sorter->count);
  sorter->sorted = new_keys(sorter->count);
  sorter->spare = new_keys(sorter->count);
  sorter->arrived = new_keys(all_keys);
  sorter->result = new_keys(all_keys);
  sorter->samples = new_keys(samples_of_rank * world.size);
  sorter->splitters = new_keys(world.size);
  sorter->to = (struct runs){new_counts(world), new_counts(world)};
  sorter->from = (struct runs){new_counts(world), new_counts(world)};
  sorter->merged = new_counts(world);
  for (int i = 0; i < sorter->count; ++i)
    sorter->keys[i] = (key)random_number((uint64_t)world.rank * all_keys + (uint64_t)i);
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct program program = {"sort", run, right};
  struct sorter sorter;
  set_up(&sorter, world);
  measure_program(&program, &sorter, world, arguments.budget);
  MPI_Finalize();
  return 0;
}
