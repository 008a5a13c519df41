// How every program here measures, with and without MPI: pinning, the clock, touching buffers, and the driver
// that turns "do this so many times" into one figure. limits.c and the MPI programs use the same code, so
// what is inside the measured time is the same for every library and for the limits.
//
// A program prints lines that bench/driver/runner.py reads:
//   value <name> <variant> <bytes> <figure>
//   info <key> <text>
#pragma once

#ifndef _GNU_SOURCE
#error "the build must define _GNU_SOURCE"
#endif
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { cache_line = 64, most_batches = 15, fewest_batches = 3 };

static inline double now(void) { // seconds
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// ---- cores ----

/// Reads BENCH_CORES ("0,1") into `cores` and returns how many there are: 0 if it is not set.
static inline int read_cores(int* cores, int most) {
  const char* text = getenv("BENCH_CORES");
  int count = 0;
  if (!text || !*text) return 0;
  for (char* end; count < most; text = end + 1) {
    cores[count++] = (int)strtol(text, &end, 10);
    if (*end != ',') break;
  }
  return count;
}

/// The core of process `rank`: cores are assigned round-robin. -1 if none are given.
static inline int core_of(int rank) {
  int cores[1024], count = read_cores(cores, 1024);
  return count > 0 ? cores[rank % count] : -1;
}

static inline bool more_than_cores(int processes) {
  int cores[1024], count = read_cores(cores, 1024);
  return count > 0 && processes > count;
}

static inline void pin_to(int core) {
  if (core < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("bench: sched_setaffinity");
}

/// The core that this process is bound to by now; -1 if it may run on several.
static inline int bound_core(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1) return -1;
  int core = 0;
  while (!CPU_ISSET(core, &set)) ++core;
  return core;
}

// ---- numbers ----

/// The random number with this index: the same one in every process (splitmix64).
static inline uint64_t random_number(uint64_t index) {
  uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  return mixed ^ mixed >> 31;
}

// ---- buffers ----

/// Numbers that are alike nowhere, other ones with each call (xorshift64*): zeros, or lines that are equal,
/// are quicker to store on some processors. `bytes` is rounded down to whole words.
static inline void fill_with_numbers(void* memory, size_t bytes) {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  for (uint64_t *word = memory, *end = word + bytes / sizeof *word; word < end; ++word) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    *word = state * 0x2545f4914f6cdd1du;
  }
}

enum { page_bytes = 4096 };

/// Where buffers begin, in bytes behind the beginning of a page: BENCH_OFFSET, a multiple of 8, or 0.
static inline size_t buffer_offset(void) {
  const char* text = getenv("BENCH_OFFSET");
  return text ? strtoul(text, NULL, 10) / 8 * 8 % page_bytes : 0;
}
/// `bytes` of private memory at an offset in a page, full of numbers.
static inline unsigned char* new_buffer_at(size_t offset, size_t bytes) {
  unsigned char* memory =
      mmap(NULL, bytes + 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    perror("bench: mmap");
    exit(3);
  }
  fill_with_numbers(memory + offset, (bytes + 7) / 8 * 8);
  return memory + offset;
}
static inline unsigned char* new_buffer(size_t bytes) { return new_buffer_at(buffer_offset(), bytes); }
static inline void free_buffer(void* buffer, size_t bytes) {
  munmap((unsigned char*)buffer - buffer_offset(), bytes + 2 * page_bytes);
}

/// What a program does that makes new data: every line is written. Out of line, so that it is the same code
/// everywhere.
__attribute__((noinline, unused)) static void rewrite_lines(unsigned char* buffer, size_t bytes,
                                                            unsigned char value) {
  for (size_t at = 0; at < bytes; at += cache_line) ((volatile unsigned char*)buffer)[at] = value;
}

/// What a program does that uses the data: every line is read. Returns whether each one had `value`.
__attribute__((noinline, unused)) static bool read_lines(const unsigned char* buffer, size_t bytes,
                                                         unsigned char value) {
  unsigned char different = 0;
  for (size_t at = 0; at < bytes; at += cache_line)
    different |= (unsigned char)(((const volatile unsigned char*)buffer)[at] ^ value);
  return different == 0;
}

/// Ends the program when a message did not bring what was sent: a fast way to deliver wrong data is not a
/// result.
static inline void require_data(bool right, const char* name, size_t bytes) {
  if (right) return;
  fprintf(stderr, "bench: %s: a message of %zu bytes brought wrong data\n", name, bytes);
  exit(4);
}

// ---- the driver ----

/// Does the thing that is measured `count` times. Every process of the measurement calls it with the same
/// count.
typedef void repeat(void* context, long count);

/// Gives every process the numbers that process 0 has. `MPI_Bcast`, or its like without MPI.
typedef void agree(long* numbers, int count);

static inline int ascending(const void* left, const void* right) {
  double difference = *(const double*)left - *(const double*)right;
  return (difference > 0) - (difference < 0);
}

static inline double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, ascending);
  return values[count / 2];
}

struct driver {
  double budget; // seconds that one figure may take, about
  agree* tell;
  bool first;   // is this process 0?
  bool crowded; // are there more processes than cores?
};

/// Seconds that one repetition takes, as this process sees it: the median of up to 15 batches which together
/// fill the budget. How many repetitions a batch has is found by doubling, so a library that is a
/// thousand times slower than another takes hardly longer to measure; what cannot be done often enough is
/// done three times.
///
/// The median leaves out batches in which somebody else had the core. When the processes crowd each other
/// out, waiting for the core is what is measured, and the mean is taken.
static inline double seconds_each(repeat* work, void* context, const struct driver* driver) {
  long plan[3] = {1, fewest_batches, 0}; // repetitions of a batch, batches, is it the last time?
  double times[most_batches];
  work(context, 1); // connections are made, pages are touched
  do {
    driver->tell(plan, 3);
    for (int batch = 0; batch < plan[1]; ++batch) {
      double start = now();
      work(context, plan[0]);
      times[batch] = (now() - start) / (double)plan[0];
    }
    if (plan[2]) break;
    if (!driver->first) continue;
    double least = times[0]; // so that one batch which waited for the core does not spoil the plan
    for (int batch = 1; batch < plan[1]; ++batch) least = times[batch] < least ? times[batch] : least;
    if (least * (double)plan[0] < driver->budget / 20) {
      plan[0] *= 2;
    } else {
      double all = driver->budget / least;
      plan[1] = all < fewest_batches ? fewest_batches : all > most_batches ? most_batches : (long)all;
      plan[0] = all / (double)plan[1] < 1 ? 1 : (long)(all / (double)plan[1]);
      plan[2] = 1;
    }
  } while (true);
  if (driver->crowded) {
    double sum = 0;
    for (int batch = 0; batch < plan[1]; ++batch) sum += times[batch];
    return sum / (double)plan[1];
  }
  return median(times, (int)plan[1]);
}

// ---- words of the command line and of the output ----

/// The arguments that most programs have: SLOT (milliseconds a figure), VARIANTS ("reused,rewritten"), SIZES
/// ("8,64").
struct arguments {
  double budget;
  const char* variants;
  size_t sizes[64];
  int count;
};

static inline struct arguments read_arguments(int argc, char** argv) {
  struct arguments read = {.budget = 0.025, .variants = "reused,rewritten"};
  if (argc > 1) read.budget = atof(argv[1]) / 1000;
  if (argc > 2) read.variants = argv[2];
  for (const char* text = argc > 3 ? argv[3] : "8"; read.count < 64; ++text) {
    char* end;
    read.sizes[read.count++] = strtoull(text, &end, 10);
    text = end;
    if (*text != ',') break;
  }
  return read;
}

/// Is `variant` one of those on the command line?
static inline bool wants(const struct arguments* arguments, const char* variant) {
  size_t length = strlen(variant);
  for (const char* text = arguments->variants; text; text = strchr(text, ',')) {
    if (*text == ',') ++text;
    if (strncmp(text, variant, length) == 0 && (text[length] == ',' || text[length] == 0)) return true;
  }
  return false;
}

static inline size_t largest_size(const struct arguments* arguments) {
  size_t largest = 0;
  for (int i = 0; i < arguments->count; ++i)
    if (arguments->sizes[i] > largest) largest = arguments->sizes[i];
  return largest;
}

static inline void print_value(const char* name, const char* variant, size_t bytes, double value) {
  printf("value %s %s %zu %.9g\n", name, variant, bytes, value);
  fflush(stdout); // what is measured stays known when the program is ended later
}
