// Windows: does every page lie on the node of its owner, or on the node that an info object requests?
//
//   windows              from MPI_Win_allocate and MPI_Win_allocate_shared, parts adjacent and apart
//   windows NODE         the same with near_memory_node=NODE
//   windows remote       the same, but another rank writes every page first, by a put
//   windows remote large the same with windows whose pages are allocated only when they are touched
#include "placement.h"

static int rank, ranks, node;
static const char* hint = "";

static MPI_Info hints(int apart) {
  MPI_Info info;
  MPI_Info_create(&info);
  if (apart) MPI_Info_set(info, "alloc_shared_noncontig", "true");
  if (hint[0] >= '0' && hint[0] <= '9') MPI_Info_set(info, "near_memory_node", hint);
  return info;
}

/// Writes the part of the next rank: pages that their owner has not placed would lie on the writer's node.
static void write_next(MPI_Win win, MPI_Aint bytes) {
  const int next = (rank + 1) % ranks;
  char* data = malloc((size_t)bytes);
  memset(data, rank, (size_t)bytes);
  MPI_Win_fence(0, win);
  MPI_Put(data, (int)bytes, MPI_BYTE, next, 0, (int)bytes, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  free(data);
}

/// Checks the pages whose first byte is in [begin, end).
static uint64_t check(const char* part, char* begin, char* end, int expected) {
  char* first = begin + (page_bytes - (uintptr_t)begin % page_bytes) % page_bytes;
  char* behind = end + (page_bytes - (uintptr_t)end % page_bytes) % page_bytes;
  struct Pages pages = {0};
  count_pages(&pages, first, behind);
  if (pages.total == 0) cannot("%s has no page", part);
  return report(rank, expected, part, &pages);
}

static uint64_t one_window(int shared, int apart, MPI_Aint bytes, int expected) {
  char part[96], *base = NULL;
  MPI_Win win;
  MPI_Info info = hints(apart);
  if (shared)
    MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &base, &win);
  else
    MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, &base, &win);
  MPI_Info_free(&info);
  if (strcmp(hint, "remote") == 0)
    write_next(win, bytes);
  else
    memset(base, rank, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  snprintf(part, sizeof part, "%s window of %ld bytes",
           !shared ? "allocated"
           : apart ? "shared, apart,"
                   : "shared",
           (long)bytes);
  uint64_t wrong = check(part, base, base + bytes, expected);
  fflush(stdout);
  MPI_Win_free(&win);
  return wrong;
}

int main(int argc, char** argv) {
  if (argc > 1) hint = argv[1];
  node = own_node();
  if (node < 0) cannot("a rank is bound to processors of several nodes");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int expected = hint[0] >= '0' && hint[0] <= '9' ? atoi(hint) : node;
  uint64_t wrong = 0, all_wrong = 0;
  const MPI_Aint sizes[] = {page_bytes, 3 * page_bytes + 100, (1 << 20) + 8, (20 << 20) + 8};
  const int large = argc > 2 && strcmp(argv[2], "large") == 0;
  for (int i = large ? 3 : 0; i < (large ? 4 : 3); ++i)
    for (int kind = 0; kind < 3; ++kind) wrong += one_window(kind != 0, kind == 2, sizes[i], expected);
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all_wrong == 0) puts("all pages on the nodes of their owners");
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
