// MPI_Alloc_mem with an info object: the node of the memory, and how much of it is in huge pages, according
// to the kernel.
//
//   asked NODE BYTES [KEY=VALUE ...]   NODE: a number, or own
#include "placement.h"

/// KiB of the range from `begin` that smaps reports as huge pages, reserved or merged.
static unsigned long huge_kib(const char* begin, uint64_t bytes) {
  FILE* file = fopen("/proc/self/smaps", "r");
  if (file == NULL) cannot("/proc/self/smaps: %s", strerror(errno));
  char line[512];
  unsigned long from, to, kib, found = 0, within = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
      unsigned long first = (unsigned long)begin, last = first + bytes;
      unsigned long low = from > first ? from : first, high = to < last ? to : last;
      within = low < high ? (high - low) / 1024 : 0;
    } else if (sscanf(line, "ShmemPmdMapped: %lu kB", &kib) == 1) {
      found += kib < within ? kib : within;
    } else if (sscanf(line, "KernelPageSize: %lu kB", &kib) == 1 && kib > 4) {
      found += within;
    }
  }
  fclose(file);
  return found;
}

int main(int argc, char** argv) {
  if (argc < 3) cannot("usage: asked NODE BYTES [KEY=VALUE ...]");
  int node = strcmp(argv[1], "own") == 0 ? own_node() : atoi(argv[1]);
  if (node < 0) cannot("a rank is bound to processors of several nodes");
  MPI_Aint bytes = atol(argv[2]);
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info info;
  MPI_Info_create(&info);
  for (int i = 3; i < argc; ++i) {
    char* value = strchr(argv[i], '=');
    if (value == NULL) cannot("%s is not KEY=VALUE", argv[i]);
    *value++ = 0;
    MPI_Info_set(info, argv[i], value);
  }
  uint64_t wrong = 0, all_wrong = 0;
  // Twice, since freed memory may be allocated again.
  for (int round = 0; round < 2; ++round) {
    char* memory = NULL;
    MPI_Alloc_mem(bytes, info, &memory);
    memset(memory, rank + 1, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    struct Pages pages = {0};
    count_pages(&pages, memory - (uintptr_t)memory % page_bytes, memory + bytes);
    wrong += report(rank, node, "asked", &pages);
    printf("rank %d: %lu of %ld KiB in huge pages\n", rank, huge_kib(memory, (uint64_t)bytes),
           (long)bytes / 1024);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Free_mem(memory);
  }
  MPI_Info_free(&info);
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all_wrong == 0) puts("all pages on the nodes of their owners");
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
