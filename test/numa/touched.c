// Finds the nodes and the owners of the pages of a library's shared memory without knowledge of the library,
// by plain MPI calls and by asking the kernel.
//
//   touched          without a planted fault
//   touched early    ranks on node 0 run on node 1 until MPI_Init has returned: their pages must be found on
//                    the wrong node
//
// After traffic of all sizes between all ranks, each pair of ranks exchanges messages by itself, while the
// others wait outside MPI. Before each such exchange the two unmap their pages of shared memory, and
// afterwards the kernel reports which pages the exchange has touched (pagemap). The kinds of pages are:
//   of one rank   only one rank touched the page, or several did, and one rank took part in all exchanges
//                 that touched it: its receive queue, its pool, its flags. It belongs on that rank's node.
//   of a pair     touched by both ranks of one pair, and in no other exchange: one writes and the other
//                 reads it. It belongs on the node of one of the two; which one cannot be told from outside.
//   of several    touched in exchanges that have no rank in common: it has no particular owner.
//   beside        touched by no exchange, or by that of one pair, and it lies between two pages of the same
//                 single rank, or in a memory file in which no other rank has a page: an unused packet of the
//                 same pool. It belongs on that rank's node.
//   idle          all others: no exchange touched it.
// The read-ahead of page faults (fault_around_bytes) must be one page, or the kernel maps neighbours, too.
#include "placement.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { most_ranks = 8, most_seconds = 400 };

// Pages by their place in a file --------------------------------------------------------------------------

struct Page {
  uint64_t device, file, number;
  uint32_t touched; ///< set of exchanges that touched it
  uint32_t ranks;   ///< set of ranks that touched it
  int node;         ///< -1: unknown
  bool used;        ///< whether this entry of the table is in use
};

enum { table_size = 1 << 19 };
static struct Page table[table_size]; ///< a hash table with open addressing
static size_t table_used;

static struct Page* entry(uint64_t device, uint64_t file, uint64_t number) {
  uint64_t mixed = (number + (file << 20) + (device << 40)) * 0x9e3779b97f4a7c15u;
  for (size_t i = mixed >> 45;; ++i) {
    struct Page* page = &table[i % table_size];
    if (page->used && page->device == device && page->file == file && page->number == number) return page;
    if (page->used) continue;
    if (++table_used > table_size / 2)
      cannot("there are more than %d pages of shared memory", table_size / 2);
    *page = (struct Page){.device = device, .file = file, .number = number, .node = -1, .used = true};
    return page;
  }
}

// Mappings of shared memory -------------------------------------------------------------------------------

struct Mapping {
  char *begin, *end;
  uint64_t offset, device, file;
};

static struct stat own_file; ///< the file of this program's own shared memory, which does not count

/// Calls `each` for every shared writable mapping except this program's own.
static void shared_mappings(void (*each)(const struct Mapping*)) {
  // The file is read completely before the first call, since the calls change the mappings.
  static char text[1 << 20];
  int maps = open("/proc/self/maps", O_RDONLY);
  size_t length = 0;
  for (ssize_t got; (got = read(maps, text + length, sizeof text - 1 - length)) > 0;) length += (size_t)got;
  close(maps);
  if (length == 0 || length == sizeof text - 1) cannot("/proc/self/maps is empty or too long");
  text[length] = '\0';
  char* rest = text;
  for (char* line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
    unsigned long begin = 0, end = 0, offset = 0, file = 0;
    unsigned major = 0, minor = 0;
    char permissions[8];
    if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu", &begin, &end, permissions, &offset, &major, &minor,
               &file) != 7)
      cannot("a line of maps: %s", line);
    if (permissions[1] != 'w' || permissions[3] != 's') continue;
    if (file == own_file.st_ino && makedev(major, minor) == own_file.st_dev) continue;
    struct Mapping mapping = {(char*)begin, (char*)end, offset, makedev(major, minor), file};
    each(&mapping);
  }
}

/// Calls `each` for the existing pages of the mapping, up to 512 at a time. The file tells which pages exist:
/// reading another page would create it.
static void existing(const struct Mapping* mapping,
                     void (*each)(const struct Mapping*, char*, unsigned long)) {
  enum { at_once = 512 };
  char path[96];
  snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (unsigned long)mapping->begin,
           (unsigned long)mapping->end);
  int file = open(path, O_RDONLY);
  if (file < 0) cannot("%s: %s", path, strerror(errno));
  off_t at = (off_t)mapping->offset, end = at + (mapping->end - mapping->begin);
  while (at < end) {
    off_t data = lseek(file, at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) cannot("%s: lseek: %s", path, strerror(errno));
    if (data < 0 || data >= end) break;
    off_t hole = lseek(file, data, SEEK_HOLE);
    if (hole < 0) cannot("%s: lseek: %s", path, strerror(errno));
    at = hole < end ? hole : end;
    for (; data < at; data += (off_t)at_once * page_bytes) {
      unsigned long count = (unsigned long)(at - data) / page_bytes;
      each(mapping, mapping->begin + (data - (off_t)mapping->offset), count < at_once ? count : at_once);
    }
  }
  close(file);
}

static struct Page* entry_of(const struct Mapping* mapping, const char* address) {
  return entry(mapping->device, mapping->file,
               (mapping->offset + (uint64_t)(address - mapping->begin)) / page_bytes);
}

// Pages that an exchange touches --------------------------------------------------------------------------

static int pagemap = -1;
static int this_exchange, this_rank;

/// Makes the kernel forget that this process has the mapping's pages; their contents stay.
static void forget(const struct Mapping* mapping) {
  if (madvise(mapping->begin, (size_t)(mapping->end - mapping->begin), MADV_DONTNEED) != 0)
    cannot("madvise: %s", strerror(errno));
}

static void note_touched(const struct Mapping* mapping, char* address, unsigned long count) {
  const uint64_t present = 1ull << 63;
  uint64_t word[512];
  ssize_t bytes = (ssize_t)(count * sizeof word[0]);
  if (pread(pagemap, word, (size_t)bytes, (off_t)((uintptr_t)address / page_bytes * sizeof word[0])) != bytes)
    cannot("/proc/self/pagemap: %s", strerror(errno));
  for (unsigned long i = 0; i < count; ++i, address += page_bytes) {
    if (!(word[i] & present)) continue;
    struct Page* page = entry_of(mapping, address);
    page->touched |= 1u << this_exchange;
    page->ranks |= 1u << this_rank;
  }
}

static void note_node(const struct Mapping* mapping, char* address, unsigned long count) {
  void* addresses[512];
  int node[512];
  for (unsigned long i = 0; i < count; ++i) {
    addresses[i] = address + i * page_bytes;
    (void)*(volatile char*)addresses[i]; // the kernel reports nodes only of mapped pages
  }
  if (syscall(SYS_move_pages, 0, count, addresses, NULL, node, 0) != 0)
    cannot("move_pages: %s", strerror(errno));
  for (unsigned long i = 0; i < count; ++i) {
    if (node[i] < 0 || node[i] >= most_nodes) cannot("page %p: %s", addresses[i], strerror(-node[i]));
    entry_of(mapping, addresses[i])->node = node[i];
  }
}

static void note_existing_touched(const struct Mapping* mapping) { existing(mapping, note_touched); }
static void note_existing_node(const struct Mapping* mapping) { existing(mapping, note_node); }

/// Checks the method: of many existing pages, the kernel must report the one that was touched, and no other.
static void check_the_means(void) {
  enum { pages = 48, used = 20 };
  char path[] = "/tmp/means.XXXXXX";
  int file = mkstemp(path);
  if (file < 0 || ftruncate(file, pages * page_bytes) != 0) cannot("%s: %s", path, strerror(errno));
  unlink(path);
  char* memory = mmap(NULL, pages * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) cannot("mmap: %s", strerror(errno));
  struct Mapping mapping = {memory, memory + pages * page_bytes, 0, 0, 0};
  memset(memory, 1, pages * page_bytes);
  forget(&mapping);
  (void)*(volatile char*)(memory + used * page_bytes);
  existing(&mapping, note_touched);
  size_t touched = 0;
  for (int i = 0; i < pages; ++i) touched += entry_of(&mapping, memory + i * page_bytes)->touched != 0;
  if (touched != 1 || entry_of(&mapping, memory + used * page_bytes)->touched == 0)
    cannot("one page was read, and the kernel told of %zu (is fault_around_bytes 4096?)", touched);
  munmap(memory, pages * page_bytes);
  close(file);
  memset(table, 0, sizeof table);
  table_used = 0;
}

// The ranks wait for each other outside MPI ---------------------------------------------------------------

struct Meeting {
  atomic_int arrived, round;
};
static struct Meeting* meeting;

static void meet(int ranks) {
  int round = atomic_load(&meeting->round);
  if (atomic_fetch_add(&meeting->arrived, 1) + 1 == ranks) {
    atomic_store(&meeting->arrived, 0);
    atomic_store(&meeting->round, round + 1);
  }
  while (atomic_load(&meeting->round) == round) usleep(1000);
}

static void arrange_meetings(int rank) {
  char path[64] = "/tmp/meeting.XXXXXX";
  int file = -1;
  if (rank == 0) file = mkstemp(path);
  MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank != 0) file = open(path, O_RDWR);
  if (file < 0 || ftruncate(file, page_bytes) != 0) cannot("%s: %s", path, strerror(errno));
  meeting = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (meeting == MAP_FAILED) cannot("mmap: %s", strerror(errno));
  fstat(file, &own_file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) unlink(path);
  close(file);
}

// Traffic -------------------------------------------------------------------------------------------------

enum { most_at_once = 64, largest = 1 << 20 };

/// Exchanges messages of all sizes with each of the others, many at a time.
static void exchange(const int* others, int count) {
  static char out[largest], in[2][most_ranks][largest];
  static MPI_Request requests[2 * most_ranks * most_at_once];
  static const int sizes[] = {1, 8, 256, 1000, 4000, 16000, 65536, 262144, largest};
  memset(out, this_rank + 1, largest);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    int bytes = sizes[i], at_once = bytes <= 4000 ? most_at_once : bytes <= 65536 ? 16 : 2, used = 0;
    for (int n = 0; n < at_once; ++n)
      for (int other = 0; other < count; ++other) {
        // Only the last two messages are checked; concurrent receives need different buffers.
        static char unseen[most_ranks][most_at_once][65536];
        char* buffer = n < at_once - 2 ? unseen[other][n] : in[n % 2][other];
        MPI_Irecv(buffer, bytes, MPI_BYTE, others[other], n, MPI_COMM_WORLD, &requests[used++]);
        MPI_Isend(out, bytes, MPI_BYTE, others[other], n, MPI_COMM_WORLD, &requests[used++]);
      }
    MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
    for (int other = 0; other < count; ++other)
      if (in[0][other][bytes - 1] != (char)(others[other] + 1) ||
          in[1][other][bytes - 1] != (char)(others[other] + 1))
        cannot("a message of %d bytes is not what was sent", bytes);
  }
}

static void warm_up(int rank, int ranks) {
  int others[most_ranks], count = 0;
  for (int other = 0; other < ranks; ++other)
    if (other != rank) others[count++] = other;
  static double in[most_ranks * 1024], out[most_ranks * 1024];
  for (int round = 0; round < 2; ++round) {
    exchange(others, count);
    for (int length = 1; length <= 1024; length *= 32) {
      MPI_Allreduce(out, in, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      MPI_Bcast(in, length, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      MPI_Alltoall(out, length, MPI_DOUBLE, in, length, MPI_DOUBLE, MPI_COMM_WORLD);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

// Result --------------------------------------------------------------------------------------------------

/// The node of a rank, and whether the rank is bound to it.
struct Seat {
  int node, bound;
};

static void collect(int rank, int ranks) {
  static struct Page theirs[table_size / 2];
  if (rank != 0) {
    size_t used = 0;
    for (size_t i = 0; i < table_size; ++i)
      if (table[i].used) theirs[used++] = table[i];
    MPI_Send(theirs, (int)(used * sizeof theirs[0]), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
  for (int other = 1; rank == 0 && other < ranks; ++other) {
    MPI_Status status;
    int bytes = 0;
    MPI_Recv(theirs, (int)sizeof theirs, MPI_BYTE, other, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    for (size_t i = 0; i < (size_t)bytes / sizeof theirs[0]; ++i) {
      struct Page* page = entry(theirs[i].device, theirs[i].file, theirs[i].number);
      page->touched |= theirs[i].touched;
      page->ranks |= theirs[i].ranks;
      if (page->node < 0) page->node = theirs[i].node;
    }
  }
}

static double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 100.0 : (double)(1000 * part / whole) / 10; // never rounded up to 100
}

enum { of_one, beside, of_a_pair, of_several, idle, kinds };

/// A page that was found, its kind and its owners.
struct Finding {
  const struct Page* page;
  int kind;
  uint32_t owners; ///< set of ranks
};

static int by_place(const void* left, const void* right) {
  const struct Page *one = ((const struct Finding*)left)->page, *other = ((const struct Finding*)right)->page;
  if (one->device != other->device) return one->device < other->device ? -1 : 1;
  if (one->file != other->file) return one->file < other->file ? -1 : 1;
  return one->number < other->number ? -1 : one->number > other->number;
}

static struct Finding finding_of(const struct Page* page, const uint32_t* pair_of) {
  if (page->touched == 0) return (struct Finding){page, idle, 0};
  uint32_t owners = ~0u;
  for (int pair = 0; pair < 32; ++pair)
    if (page->touched >> pair & 1) owners &= pair_of[pair];
  if (__builtin_popcount(page->ranks) == 1) owners = page->ranks;
  int kind = owners == 0 ? of_several : __builtin_popcount(owners) == 1 ? of_one : of_a_pair;
  return (struct Finding){page, kind, owners};
}

/// Assigns pages that are idle or of a pair to a rank: the one that has all pages of one rank in their file,
/// or the one that has both neighbouring ones. `findings` are of one file.
static void give_those_beside(struct Finding* findings, size_t count) {
  uint32_t all = 0;
  for (size_t i = 0; i < count; ++i)
    if (findings[i].kind == of_one || findings[i].kind == of_several)
      all |= findings[i].kind == of_one ? findings[i].owners : ~0u;
  bool one_has_all = __builtin_popcount(all) == 1;
  uint32_t before = one_has_all ? all : 0;
  for (size_t i = 0, open = 0; i <= count; ++i) {
    bool known = i < count && (findings[i].kind == of_one || findings[i].kind == of_several);
    if (i < count && !known) continue;
    uint32_t after = one_has_all ? all : i < count && findings[i].kind == of_one ? findings[i].owners : 0;
    for (; open < i; ++open)
      // A page of a pair can only belong to a rank of this pair.
      if (before != 0 && before == after &&
          (findings[open].kind == idle || (findings[open].owners & before) != 0))
        findings[open] = (struct Finding){findings[open].page, beside, before};
    open = i + 1;
    before = after;
  }
}

static void print_line(const char* what, const char* where, uint64_t local, uint64_t count) {
  printf("%s: %llu pages, %.1f%% on %s\n", what, (unsigned long long)count, percent(local, count), where);
}

static void print_result(int ranks, const struct Seat* seats, const uint32_t* pair_of) {
  static struct Finding findings[table_size / 2];
  size_t total = 0;
  uint64_t count[kinds] = {0}, local[kinds] = {0}, on[most_nodes] = {0};
  uint64_t of_rank[most_ranks] = {0}, at_home[most_ranks] = {0};
  for (size_t i = 0; i < table_size; ++i) // pages freed since have no known node
    if (table[i].used && table[i].node >= 0) findings[total++] = finding_of(&table[i], pair_of);
  qsort(findings, total, sizeof findings[0], by_place);
  for (size_t begin = 0, end = 0; begin < total; begin = end) {
    while (end < total && findings[end].page->file == findings[begin].page->file &&
           findings[end].page->device == findings[begin].page->device)
      ++end;
    give_those_beside(findings + begin, end - begin);
  }
  for (size_t i = 0; i < total; ++i) {
    int kind = findings[i].kind, node = findings[i].page->node;
    bool good = false;
    for (int rank = 0; rank < ranks && findings[i].owners != 0; ++rank) {
      if (!(findings[i].owners >> rank & 1)) continue;
      good = good || seats[rank].node == node;
      if (kind != of_one && kind != beside) continue;
      ++of_rank[rank];
      at_home[rank] += seats[rank].node == node;
    }
    ++on[node];
    ++count[kind];
    local[kind] += good;
  }
  for (int rank = 0; rank < ranks; ++rank)
    printf("rank %d (node %d, %s): %llu pages, %llu there\n", rank, seats[rank].node,
           seats[rank].bound ? "bound" : "not bound", (unsigned long long)of_rank[rank],
           (unsigned long long)at_home[rank]);
  print_line("of one rank", "its node", local[of_one], count[of_one]);
  print_line("beside", "its node", local[beside], count[beside]);
  print_line("of a pair", "the node of one of the two", local[of_a_pair], count[of_a_pair]);
  printf("of several: %llu pages\nidle: %llu pages\n", (unsigned long long)count[of_several],
         (unsigned long long)count[idle]);
  printf("in all: %zu pages, on nodes", total);
  for (int node = 0; node < most_nodes; ++node)
    if (on[node] != 0) printf(" %d: %llu", node, (unsigned long long)on[node]);
  putchar('\n');
}

int main(int argc, char** argv) {
  alarm(most_seconds);
  cpu_set_t bound;
  sched_getaffinity(0, sizeof bound, &bound);
  if (argc > 1 && strcmp(argv[1], "early") == 0 && own_node() == 0) move_to_node(1);
  MPI_Init(&argc, &argv);
  sched_setaffinity(0, sizeof bound, &bound);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 3 || ranks > most_ranks) cannot("there must be 3 to %d ranks", most_ranks);
  this_rank = rank;
  pagemap = open("/proc/self/pagemap", O_RDONLY);
  if (pagemap < 0) cannot("/proc/self/pagemap: %s", strerror(errno));
  check_the_means();
  arrange_meetings(rank);
  warm_up(rank, ranks);

  uint32_t pair_of[32] = {0};
  for (int one = 0; one < ranks; ++one)
    for (int other = one + 1; other < ranks; ++other, ++this_exchange) {
      pair_of[this_exchange] = 1u << one | 1u << other;
      bool mine = rank == one || rank == other;
      meet(ranks);
      if (mine) shared_mappings(forget);
      meet(ranks);
      if (mine) exchange(rank == one ? &other : &one, 1);
      if (mine) shared_mappings(note_existing_touched);
    }
  meet(ranks);
  shared_mappings(note_existing_node);
  struct Seat seat = {node_of_processor(sched_getcpu()), own_node() >= 0}, seats[most_ranks];
  MPI_Gather(&seat, 2, MPI_INT, seats, 2, MPI_INT, 0, MPI_COMM_WORLD);
  collect(rank, ranks);
  if (rank == 0) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    printf("library: %s\n", version);
    print_result(ranks, seats, pair_of);
  }
  MPI_Finalize();
  return 0;
}
