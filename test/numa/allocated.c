// MPI_Alloc_mem, from one page to many: memory that a process allocates and writes lies on its own node.
#include "placement.h"

int main(int argc, char** argv) {
  int node = own_node();
  if (node < 0) cannot("a rank is bound to processors of several nodes");
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  uint64_t wrong = 0, all_wrong = 0;
  for (MPI_Aint bytes = page_bytes; bytes <= 16 << 20; bytes *= 16) {
    char* memory = NULL;
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory);
    memset(memory, rank + 1, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    struct Pages pages = {0};
    char* first = memory - (uintptr_t)memory % page_bytes;
    count_pages(&pages, first, memory + bytes);
    char part[64];
    snprintf(part, sizeof part, "MPI_Alloc_mem of %ld bytes", (long)bytes);
    wrong += report(rank, node, part, &pages);
    MPI_Free_mem(memory);
  }
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all_wrong == 0) puts("all pages on the nodes of their owners");
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
