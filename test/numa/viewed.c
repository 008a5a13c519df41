// Checks what `near place` reports about this job while its ranks wait: rank 0 starts it and compares its
// totals with the numa_maps of all ranks, which it reads itself.
//
//   viewed                 without a planted fault: no warnings
//   viewed neighbour       the last rank writes to an untouched page of rank 0's arena
//   viewed heap            rank 0 moves a page of its own memory to the last node
//   viewed moved           rank 0 moves itself to node 1
//   viewed policies        each rank has memory that it requested on other nodes: no warnings
//   viewed windows         each rank has windows: separate ones, and one whose parts are adjacent
//   viewed window-neighbour  the last rank moves a page of rank 0's window to its node
//   viewed huge            each rank has enough memory from MPI_Alloc_mem to be in huge pages
#include "placement.h"
#include <linux/mempolicy.h>
#include <spawn.h>
#include <sys/wait.h>

enum { most_ranks = 16, output_bytes = 1 << 20 };
static const char* const output = "/tmp/viewed.json";

struct Totals {
  uint64_t on[most_nodes];
};

/// The sum of a process's numa_maps, in bytes.
static struct Totals read_numa_maps(int pid) {
  static char text[1 << 20];
  struct Totals totals = {{0}};
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/numa_maps", pid);
  int file = open(path, O_RDONLY);
  if (file < 0) cannot("%s: %s", path, strerror(errno));
  size_t length = 0;
  for (ssize_t got; (got = read(file, text + length, sizeof text - 1 - length)) > 0;) length += (size_t)got;
  close(file);
  text[length] = 0;
  char* next_line = NULL;
  for (char* line = strtok_r(text, "\n", &next_line); line != NULL; line = strtok_r(NULL, "\n", &next_line)) {
    const char* unit = strstr(line, " kernelpagesize_kB=");
    if (unit == NULL) continue;
    unsigned long long kib = strtoull(unit + strlen(" kernelpagesize_kB="), NULL, 10);
    for (const char* at = strstr(line, " N"); at != NULL; at = strstr(at + 1, " N")) {
      unsigned node = 0;
      unsigned long long pages = 0;
      if (sscanf(at, " N%u=%llu", &node, &pages) == 2 && node < most_nodes)
        totals.on[node] += pages * kib * 1024;
    }
  }
  return totals;
}

/// Runs near and returns its exit status.
static int run_near(char* const arguments[]) {
  extern char** environ;
  int pid = 0, status = 0;
  // Not fork, because of the pages that parent and child share until they are written.
  int error = posix_spawnp(&pid, "near", NULL, NULL, arguments, environ);
  if (error != 0) cannot("near: %s", strerror(error));
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) cannot("near did not end by itself");
  return WEXITSTATUS(status);
}

/// The totals of process `pid` in the viewer's JSON: the first "bytes_on" after its "pid".
static struct Totals totals_in(const char* json, int pid) {
  struct Totals totals = {{0}};
  char key[32];
  snprintf(key, sizeof key, "\"pid\": %d,", pid);
  const char* at = strstr(json, key);
  at = at == NULL ? NULL : strstr(at, "\"bytes_on\": {");
  const char* end = at == NULL ? NULL : strchr(at, '}');
  if (end == NULL) cannot("the viewer's JSON has no totals of process %d", pid);
  for (at = strchr(at, '{'); (at = strchr(at, '"')) != NULL && at < end; at = strchr(at, ':')) {
    unsigned node = 0;
    unsigned long long bytes = 0;
    if (sscanf(at, "\"%u\": %llu", &node, &bytes) != 2 || node >= most_nodes) cannot("totals: %.60s", at);
    totals.on[node] = bytes;
  }
  return totals;
}

/// Compares the viewer's totals with the kernel's at a time when nothing changes; returns 1 if they differ.
static int compare(const int* pids, int ranks, char* job) {
  static char json[output_bytes];
  static struct Totals before[most_ranks], after[most_ranks];
  char* const arguments[] = {"near", "place", "--job", job, "--json", "--output", (char*)output, NULL};
  memset(json, 1, sizeof json); // so that reading allocates no page; small, so that one wrong page counts
  for (int attempt = 0;; ++attempt) {
    for (int rank = 0; rank < ranks; ++rank) before[rank] = read_numa_maps(pids[rank]);
    int status = run_near(arguments);
    if (status != 0) cannot("near place ended with status %d", status);
    for (int rank = 0; rank < ranks; ++rank) after[rank] = read_numa_maps(pids[rank]);
    if (memcmp(before, after, sizeof before) == 0) break;
    if (attempt == 20) cannot("the ranks never stood still");
  }
  int file = open(output, O_RDONLY);
  ssize_t length = file < 0 ? -1 : read(file, json, sizeof json - 1);
  if (length <= 0 || length == sizeof json - 1) cannot("the viewer's JSON: %s", strerror(errno));
  close(file);
  json[length] = 0;
  int differ = 0, huge = 0;
  for (const char* at = strstr(json, "\"segment\": ["); at != NULL;
       at = strstr(at + 1, "\"huge_bytes\": 4194304,"))
    ++huge; // counts the beginning of the list, too
  int windows = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    char owned[64];
    snprintf(owned, sizeof owned, "\"owner\": %d,", rank);
    int found = 0;
    for (const char* at = strstr(json, owned); at != NULL && !found; at = strstr(at + 1, owned)) {
      const char *next = at + strlen(owned), *role = "\"role\": \"window\"";
      next += strspn(next, " \n");
      found = strncmp(next, role, strlen(role)) == 0;
    }
    windows += found;
  }
  if (windows == ranks) puts("every rank has pages in windows");
  if (huge == ranks + 1) puts("each rank has an arena in huge pages");
  for (int rank = 0; rank < ranks; ++rank) {
    struct Totals seen = totals_in(json, pids[rank]);
    for (int node = 0; node < most_nodes; ++node) {
      if (before[rank].on[node] == 0 && seen.on[node] == 0) continue;
      printf("rank %d node %d: numa_maps %llu, near place %llu%s\n", rank, node,
             (unsigned long long)before[rank].on[node], (unsigned long long)seen.on[node],
             before[rank].on[node] == seen.on[node] ? "" : ": DIFFERENT");
      differ |= before[rank].on[node] != seen.on[node];
    }
  }
  return differ;
}

static char* fresh_pages(size_t count) {
  char* made = mmap(NULL, count * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) cannot("mmap: %s", strerror(errno));
  return made;
}

static void take_memory_by_policy(int node, int policy, unsigned long nodes) {
  enum { pages = 64 };
  char* memory = fresh_pages(pages);
  if (syscall(SYS_mbind, memory, (size_t)pages * page_bytes, policy, &nodes, sizeof nodes * 8, 0) != 0)
    cannot("mbind: %s", strerror(errno));
  memset(memory, 1, (size_t)pages * page_bytes);
  struct Pages counted = {0};
  count_pages(&counted, memory, memory + (size_t)pages * page_bytes);
  if (counted.on[node] == counted.total) cannot("memory that was asked for elsewhere lies on node %d", node);
}

static char* take_memory_of_node(int node) {
  enum { bytes = 64 * page_bytes };
  char number[8], *memory = NULL;
  MPI_Info info;
  snprintf(number, sizeof number, "%d", node);
  MPI_Info_create(&info);
  MPI_Info_set(info, "near_memory_node", number);
  MPI_Alloc_mem(bytes, info, &memory);
  MPI_Info_free(&info);
  memset(memory, 1, bytes);
  struct Pages counted = {0};
  count_pages(&counted, memory, memory + bytes);
  if (counted.on[node] != counted.total) cannot("memory of MPI_Alloc_mem does not lie on node %d", node);
  return memory;
}

static MPI_Win window, row;

static void make_windows(void) {
  enum { bytes = 40 * page_bytes + 100 };
  char* base = NULL;
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  memset(base, 1, bytes);
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &row);
  memset(base, 1, bytes);
}

/// Moves a page of rank 0's window to this rank's node.
static void take_a_page_of_the_first(int node) {
  char* base = NULL;
  MPI_Aint bytes = 0;
  int unit = 0, status = -1;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &base);
  void* page = base;
  *(volatile char*)page = 1;
  if (syscall(SYS_move_pages, 0, 1ul, &page, &node, &status, MPOL_MF_MOVE_ALL) != 0 || status != node)
    cannot("move_pages: status %d, %s", status, strerror(errno));
}

int main(int argc, char** argv) {
  const char* fault = argc > 1 ? argv[1] : "";
  int node = own_node(), rank = 0, ranks = 0;
  if (node < 0) cannot("a rank is bound to processors of several nodes");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 4 || ranks > most_ranks) cannot("this needs 4 to %d ranks", most_ranks);
  char* own = NULL;
  MPI_Alloc_mem(strcmp(fault, "huge") == 0 ? 4 << 20 : 1 << 20, MPI_INFO_NULL, &own);
  memset(own, 1, 1 << 20);
  char *heap = fresh_pages(16), *asked = NULL;
  memset(heap, 1, (size_t)16 * page_bytes);
  if (strcmp(fault, "neighbour") == 0 && rank == ranks - 1) {
    struct Mapped segment = find_segment();
    segment.base[region_of(&segment, 0).begin[far_arena] + (1ull << 30)] = 1;
  }
  if (strcmp(fault, "heap") == 0 && rank == 0) {
    void* page = heap + 5 * page_bytes;
    int target = 3, status = -1;
    if (syscall(SYS_move_pages, 0, 1ul, &page, &target, &status, MPOL_MF_MOVE) != 0 || status != target)
      cannot("move_pages: status %d, %s", status, strerror(errno));
  }
  if (strcmp(fault, "policies") == 0) {
    take_memory_by_policy(node, MPOL_BIND, 1ul << (node + 1) % 4);
    take_memory_by_policy(node, MPOL_INTERLEAVE, 0xf);
    asked = take_memory_of_node((node + 1) % 4);
  }
  const int windows = strncmp(fault, "window", 6) == 0;
  if (windows) make_windows();
  if (strcmp(fault, "window-neighbour") == 0 && rank == ranks - 1) take_a_page_of_the_first(node);
  int pid = getpid(), pids[most_ranks];
  MPI_Gather(&pid, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);

  int bad = 0;
  if (rank == 0) {
    if (strcmp(fault, "moved") == 0) move_to_node(1);
    char job[16];
    snprintf(job, sizeof job, "%d", getppid());
    bad = compare(pids, ranks, job);
    if (!bad) puts("the totals are those of numa_maps");
    fflush(stdout);
    char* const arguments[] = {"near", "place", "--job", job, "--assert-local", "99.9", NULL};
    printf("near place --assert-local ended with status %d\n", run_near(arguments));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Free_mem(own);
  if (asked != NULL) MPI_Free_mem(asked);
  if (windows) MPI_Win_free(&window);
  if (windows) MPI_Win_free(&row);
  MPI_Finalize();
  return bad;
}
