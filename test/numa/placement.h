// Finds the nodes of pages by asking only the kernel. Calls no function of the library for it; all that this
// file knows about the library is the layout of the segment, as numbers (src/segment/segment.h).
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { page_bytes = 4096, most_nodes = 16 };

/// Reports why a check cannot be made and ends with status 3, to distinguish this from a wrong page.
__attribute__((format(printf, 1, 2), noreturn)) static inline void cannot(const char* sentence, ...) {
  va_list values;
  va_start(values, sentence);
  fputs("cannot check: ", stderr);
  vfprintf(stderr, sentence, values);
  fputc('\n', stderr);
  va_end(values);
  exit(3);
}

/// The node of a processor, from sysfs.
static inline int node_of_processor(int processor) {
  for (int node = 0; node < most_nodes; ++node) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d", processor, node);
    if (access(path, F_OK) == 0) return node;
  }
  cannot("processor %d has no node", processor);
}

/// The node that this process is bound to; -1 if its processors are on several nodes.
static inline int own_node(void) {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) cannot("sched_getaffinity: %s", strerror(errno));
  int node = -1;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &mask)) continue;
    int its = node_of_processor(processor);
    if (node >= 0 && its != node) return -1;
    node = its;
  }
  return node;
}

/// Binds this process to the processors of a node.
static inline void move_to_node(int node) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  long processors = sysconf(_SC_NPROCESSORS_CONF);
  for (int processor = 0; processor < processors; ++processor)
    if (node_of_processor(processor) == node) CPU_SET(processor, &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) cannot("sched_setaffinity: %s", strerror(errno));
}

/// Numbers of pages by node.
struct Pages {
  uint64_t total;
  uint64_t on[most_nodes];
};

/// Adds the pages from `begin` to `end`, which must exist. Reads each once, so that this process maps it and
/// the kernel can report its node.
static inline void count_pages(struct Pages* pages, char* begin, char* end) {
  enum { at_once = 512 };
  while (begin < end) {
    void* address[at_once];
    int node[at_once];
    unsigned long count = 0;
    for (; count < at_once && begin < end; begin += page_bytes) {
      (void)*(volatile char*)begin;
      address[count++] = begin;
    }
    if (syscall(SYS_move_pages, 0, count, address, NULL, node, 0) != 0)
      cannot("move_pages: %s", strerror(errno));
    for (unsigned long i = 0; i < count; ++i) {
      if (node[i] < 0 || node[i] >= most_nodes) cannot("page %p: %s", address[i], strerror(-node[i]));
      ++pages->total;
      ++pages->on[node[i]];
    }
  }
}

/// Prints a line about pages that belong on `node`; returns how many are elsewhere.
static inline uint64_t report(int rank, int node, const char* part, const struct Pages* pages) {
  uint64_t good = pages->on[node];
  char line[512];
  int length = snprintf(line, sizeof line, "rank %d (node %d) %s: %llu pages, %.1f%% on node %d", rank, node,
                        part, (unsigned long long)pages->total,
                        pages->total == 0 ? 100.0 : 100.0 * (double)good / (double)pages->total, node);
  for (int other = 0; other < most_nodes; ++other)
    if (other != node && pages->on[other] != 0)
      length += snprintf(line + length, sizeof line - (size_t)length, ", wrong: %llu on node %d",
                         (unsigned long long)pages->on[other], other);
  puts(line);
  return pages->total - good;
}

/// The job's segment as mapped by this process.
struct Mapped {
  char* base;
  uint64_t bytes;
  int file; ///< the memory file itself, which tells which pages exist, whichever process made them
};

static inline struct Mapped find_segment(void) {
  struct Mapped found = {NULL, 0, -1};
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) cannot("/proc/self/maps: %s", strerror(errno));
  char line[512];
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin = 0, end = 0, offset = 0;
    if (strstr(line, "/memfd:nearmpi ") == NULL) continue;
    if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) != 3) cannot("a line of maps: %s", line);
    // Memory policies have split the mapping.
    char* base = (char*)(begin - offset);
    if (found.base != NULL && found.base != base) cannot("two segments are mapped");
    found.base = base;
    if (offset + (end - begin) > found.bytes) found.bytes = offset + (end - begin);
    if (found.file >= 0) continue;
    char path[96];
    snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", begin, end);
    found.file = open(path, O_RDONLY);
    if (found.file < 0) cannot("%s: %s", path, strerror(errno));
  }
  fclose(maps);
  if (found.base == NULL) cannot("no segment is mapped");
  return found;
}

/// Counts the existing pages of the segment between two offsets. The file tells which pages exist: reading
/// another page would create it.
static inline struct Pages existing_pages(const struct Mapped* segment, uint64_t begin, uint64_t end) {
  struct Pages pages = {0};
  while (begin < end) {
    off_t data = lseek(segment->file, (off_t)begin, SEEK_DATA);
    if (data < 0 && errno != ENXIO) cannot("lseek: %s", strerror(errno));
    if (data < 0 || (uint64_t)data >= end) break;
    off_t hole = lseek(segment->file, data, SEEK_HOLE);
    if (hole < 0) cannot("lseek: %s", strerror(errno));
    begin = (uint64_t)hole < end ? (uint64_t)hole : end;
    count_pages(&pages, segment->base + data, segment->base + begin);
  }
  return pages;
}

/// The parts that a process owns. All but the last are in its region, one after the other; the far arenas
/// follow the regions.
enum { parts = 13, area = 4, arena = 11, far_arena = 12 };
static const char* const part_names[parts] = {"control", "queue",  "credits",  "flags",      "area",
                                              "lanes",   "slices", "packets",  "statistics", "traffic",
                                              "blocks",  "arena",  "far arena"};
struct Region {
  uint64_t begin[parts], end[parts]; ///< offsets from the segment's start
};

static inline uint64_t word_at(const struct Mapped* segment, uint64_t offset) {
  return *(const volatile uint64_t*)(segment->base + offset);
}

/// The region of the process in that slot, which must have set it up.
static inline struct Region region_of(const struct Mapped* segment, int slot) {
  enum {
    known_version = 20,
    version_at = 8,
    slots_at = 12,
    stride_at = 24,
    far_stride_at = 152,
    offsets_at = 16
  };
  const uint64_t magic = 0x4e6561724d504931;
  if (word_at(segment, 0) != magic || (uint32_t)word_at(segment, version_at) != known_version)
    cannot("the segment's layout is not version %d: look up segment.h, change region_of()", known_version);
  uint64_t stride = word_at(segment, stride_at), at = ((uint64_t)slot + 1) * stride;
  if (word_at(segment, at) != magic) cannot("slot %d has no region", slot);
  struct Region region = {.begin = {at}};
  for (int part = 1; part <= arena; ++part)
    region.begin[part] = word_at(segment, at + offsets_at + 8 * ((uint64_t)part - 1));
  for (int part = 0; part < arena; ++part) region.end[part] = region.begin[part + 1];
  region.end[arena] = at + stride;
  uint32_t slots = *(const volatile uint32_t*)(segment->base + slots_at);
  uint64_t far_stride = word_at(segment, far_stride_at);
  if (far_stride == 0) cannot("there are no far arenas: are addresses limited?");
  region.begin[far_arena] = (slots + 1ull) * stride + (uint64_t)slot * far_stride;
  region.end[far_arena] = region.begin[far_arena] + far_stride;
  for (int part = 0; part < parts; ++part)
    // Without an area of MPI_COMM_WORLD its part is empty.
    if (region.begin[part] + (part != area) > region.end[part] || region.begin[part] % page_bytes != 0)
      cannot("part %s of slot %d does not begin on a page before its end", part_names[part], slot);
  return region;
}
