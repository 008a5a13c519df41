// A rank stores random words in every page of the job's segment that it can write, then ends in a way chosen
// by the seed. Usage: overwrites_shared_memory SEED [WAY]. The launcher must survive this.
#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { page = 4096, words_of_page = page / 8, most_mappings = 64 };

static uint64_t state;
static uint64_t draw(void) { // splitmix64
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// Words that may be taken for a number, a phase, a process or an offset.
static uint64_t word(void) {
  switch (draw() % 8) {
  case 0: return draw();
  case 1: return draw() % 8;
  case 2: return (draw() % 8) << 32 | draw() % 8;
  case 3: return UINT64_MAX >> draw() % 64;
  case 4: return UINT64_C(1) << draw() % 64;
  case 5: return (uint64_t)getpid() << 32 | (uint64_t)getpid();
  case 6: return (uint64_t)getppid() << 32 | draw() % 4;
  default: return 0x1b5b324a1b5b334dull; // a control sequence for terminals
  }
}

static struct mapping {
  char* begin;
  uint64_t bytes, offset;
} mappings[most_mappings];
static int mapping_count;

static void find_mappings(uint64_t inode) {
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  char line[512];
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long long begin, end, offset, found;
    char permissions[8];
    if (sscanf(line, "%llx-%llx %7s %llx %*s %llu", &begin, &end, permissions, &offset, &found) != 5)
      continue;
    if (found != inode || permissions[1] != 'w' || mapping_count == most_mappings) continue;
    mappings[mapping_count++] = (struct mapping){(char*)(uintptr_t)begin, end - begin, offset};
  }
  fclose(maps);
  CHECK(mapping_count > 0);
}

static void spoil(char* at, unsigned words) {
  for (unsigned i = 0; i < words; ++i) {
    uint64_t value = word();
    memcpy(at + draw() % words_of_page * 8, &value, sizeof value);
  }
}

// Every page that exists, and some that do not exist yet.
static void spoil_everything(int file, unsigned words) {
  for (int i = 0; i < mapping_count; ++i) {
    const struct mapping* it = &mappings[i];
    off_t end = (off_t)(it->offset + it->bytes), at = (off_t)it->offset, hole;
    while ((at = lseek(file, at, SEEK_DATA)) >= 0 && at < end) {
      hole = lseek(file, at, SEEK_HOLE);
      if (hole < 0 || hole > end) hole = end;
      for (; at < hole; at += page) spoil(it->begin + (at - (off_t)it->offset), words);
    }
    for (int new_page = 0; new_page < 4; ++new_page)
      spoil(it->begin + draw() % (it->bytes / page) * page, words);
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int count, char** arguments) {
  static const char* const ways[] = {"exit",  "fault", "no-finalize", "finalize",   "hang", "abort",
                                     "child", "flood", "kill",        "supervisor", "go-on"};
  uint64_t seed = strtoull(count > 1 ? arguments[1] : "0", NULL, 10);
  const char* way = count > 2 ? arguments[2] : ways[seed % (sizeof ways / sizeof *ways)];
  // Kept because the library closes its descriptor, which is needed to find the existing pages.
  const char* told = getenv("NEAR_BOOT_SEGMENT");
  int file = told != NULL ? dup(atoi(told)) : -1;
  const char* launcher = getenv("NEAR_BOOT_LAUNCHER");
  pid_t front = launcher != NULL ? atoi(launcher) : 0;
  OK(MPI_Init(&count, &arguments));
  int rank, size, nothing = 0;
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  state = seed;
  if (rank != (int)(draw() % (uint64_t)size)) {
    MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
  }
  struct stat status;
  CHECK(file >= 0 && fstat(file, &status) == 0);
  find_mappings(status.st_ino);
  puts("overwrites"); // tells the driver that the job got this far
  fflush(stdout);
  unsigned words = 1u << draw() % 10; // a few words of each page, or all of them
  double until = seconds() + (double)(draw() % 4) * 0.1;
  do spoil_everything(file, words);
  while (seconds() < until);

  if (strcmp(way, "exit") == 0) _exit(3);
  if (strcmp(way, "fault") == 0) raise(SIGSEGV);
  if (strcmp(way, "no-finalize") == 0) _exit(0);
  if (strcmp(way, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(way, "kill") == 0) raise(SIGKILL);
  if (strcmp(way, "child") == 0 && fork() == 0) { // a process that the launcher has not started
    pause();
    _exit(0);
  }
  if (strcmp(way, "child") == 0) _exit(0);
  if (strcmp(way, "supervisor") == 0) kill(getppid(), SIGKILL);
  if (strcmp(way, "finalize") == 0) {
    MPI_Finalize();
    return 0;
  }
  for (;;) { // hang, flood, go-on: until --timeout
    if (strcmp(way, "hang") == 0) pause();
    if (strcmp(way, "flood") == 0) kill(front, SIGURG);
    if (strcmp(way, "go-on") == 0) spoil_everything(file, words);
  }
}
