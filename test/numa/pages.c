// After traffic of all sizes between all pairs: does every page of a rank's region lie on the rank's node?
//
//   pages             without a planted fault
//   pages early       rank 0 runs on another node until MPI_Init has returned, as in a program that moves its
//                     processes itself: its pages must be found on the wrong node
//   pages neighbour   the last rank writes to an untouched page of rank 0's arena, which must be found on the
//                     wrong node
#include "placement.h"

/// Messages between all pairs: inline, in packets, and by the protocols for large messages.
static void traffic(int rank, int ranks) {
  enum { largest = 1 << 20 };
  char* out = malloc(largest);
  char* in = malloc(largest);
  if (out == NULL || in == NULL) cannot("no memory for messages");
  memset(out, rank, largest);
  for (int bytes = 1; bytes <= largest; bytes *= 4)
    for (int step = 1; step < ranks; ++step) {
      int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
      MPI_Sendrecv(out, bytes, MPI_BYTE, to, 0, in, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      if (in[bytes - 1] != (char)from) cannot("a message of %d bytes is not what was sent", bytes);
    }
  // Many messages before their receives take more packets than there are at the start.
  enum { burst = 200, packet = 4000 };
  MPI_Request sent[burst];
  for (int i = 0; i < burst; ++i)
    MPI_Isend(out, packet, MPI_BYTE, (rank + 1) % ranks, 1, MPI_COMM_WORLD, &sent[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < burst; ++i)
    MPI_Recv(in, packet, MPI_BYTE, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(burst, sent, MPI_STATUSES_IGNORE);
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  const char* fault = argc > 1 ? argv[1] : "";
  int node = own_node();
  if (node < 0) cannot("a rank is bound to processors of several nodes");
  cpu_set_t bound;
  sched_getaffinity(0, sizeof bound, &bound);
  if (strcmp(fault, "early") == 0 && node == 0) move_to_node(1);
  MPI_Init(&argc, &argv);
  sched_setaffinity(0, sizeof bound, &bound);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  char* own = NULL;
  MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &own);
  traffic(rank, ranks);
  struct Mapped segment = find_segment();
  if (strcmp(fault, "neighbour") == 0 && rank == ranks - 1)
    segment.base[region_of(&segment, 0).begin[far_arena] + (1ull << 30)] = 1;
  MPI_Barrier(MPI_COMM_WORLD);

  struct Region region = region_of(&segment, rank);
  uint64_t wrong = 0, all_wrong = 0;
  for (int part = 0; part < parts; ++part) {
    struct Pages pages = existing_pages(&segment, region.begin[part], region.end[part]);
    if (pages.total == 0)
      cannot("rank %d has no page in part %s: was there no traffic?", rank, part_names[part]);
    wrong += report(rank, node, part_names[part], &pages);
  }
  if (rank == 0) {
    // No rank owns the addresses between the last rank's region and the far arenas, and those behind these.
    struct Region first = region, last = region_of(&segment, ranks - 1);
    struct Pages pages = existing_pages(&segment, last.end[arena], first.begin[far_arena]);
    struct Pages behind = existing_pages(&segment, last.end[far_arena], segment.bytes);
    pages.total += behind.total;
    printf("of nobody: %llu pages\n", (unsigned long long)pages.total);
    wrong += pages.total;
  }
  fflush(stdout);
  MPI_Free_mem(own);
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all_wrong == 0) puts("all pages on the nodes of their owners");
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
