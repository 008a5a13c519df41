// Two processes bound to two cores that share memory, without MPI: what the programs of limits are made of.
// Each has a private buffer to send from and one to receive into, at addresses that the other knows.
#pragma once

#include "measure.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// ---- stores that bypass the cache ----

typedef void store_lines(unsigned char* to, const unsigned char* from, size_t lines);

static void store_plain(unsigned char* to, const unsigned char* from, size_t lines) {
  memcpy(to, from, lines * cache_line);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void stream_avx512(unsigned char* to, const unsigned char* from,
                                                             size_t lines) {
  for (size_t at = 0; at < lines * cache_line; at += 64)
    _mm512_stream_si512((void*)(to + at), _mm512_loadu_si512(from + at));
  _mm_sfence();
}

__attribute__((target("avx2"))) static void stream_avx2(unsigned char* to, const unsigned char* from,
                                                        size_t lines) {
  for (size_t at = 0; at < lines * cache_line; at += 64) {
    __m256i low = _mm256_loadu_si256((const void*)(from + at));
    __m256i high = _mm256_loadu_si256((const void*)(from + at + 32));
    _mm256_stream_si256((void*)(to + at), low);
    _mm256_stream_si256((void*)(to + at + 32), high);
  }
  _mm_sfence();
}

static void stream_sse2(unsigned char* to, const unsigned char* from, size_t lines) {
  for (size_t at = 0; at < lines * cache_line; at += 16)
    _mm_stream_si128((void*)(to + at), _mm_loadu_si128((const void*)(from + at)));
  _mm_sfence();
}
#endif

static store_lines* stream_lines = store_plain;

/// Chooses the widest stores of this processor and names them.
static const char* choose_stores(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return stream_lines = stream_avx512, "avx512";
  if (__builtin_cpu_supports("avx2")) return stream_lines = stream_avx2, "avx2";
  return stream_lines = stream_sse2, "sse2";
#else
  return "ordinary";
#endif
}

/// `to` at a line's beginning; what is left after whole lines is stored as usual.
static inline void stream(unsigned char* to, const unsigned char* from, size_t bytes) {
  size_t whole = bytes / cache_line;
  stream_lines(to, from, whole);
  memcpy(to + whole * cache_line, from + whole * cache_line, bytes % cache_line);
}

static inline void copy(unsigned char* to, const unsigned char* from, size_t bytes) {
  memcpy(to, from, bytes);
}

// ---- words between them ----

/// A number that one process raises and the other one waits for; nothing else is in its line.
struct flag {
  _Alignas(cache_line) _Atomic uint64_t number;
};

static inline void raise_to(struct flag* flag, uint64_t number) {
  atomic_store_explicit(&flag->number, number, memory_order_release);
}

static inline uint64_t seen(struct flag* flag) {
  return atomic_load_explicit(&flag->number, memory_order_acquire);
}

static inline void wait_for(struct flag* flag, uint64_t number) {
  while (seen(flag) < number) {}
}

// ---- the two ----

/// Shared by both processes.
struct meeting {
  struct flag told, heard; // agree_by_memory
  long numbers[8];
  long facts[2][2];              // of each process: its core, whether it may copy
  unsigned char* private_out[2]; // addresses in the owner
  unsigned char* private_in[2];
  pid_t process[2];
};

/// Private to each process.
static struct {
  struct meeting* meeting;
  int self;
  pid_t child;        // of process 0: the other one
  bool cma;           // may each process copy from the other?
  unsigned char* out; // private buffers
  unsigned char* in;
} pair;

static void agree_by_memory(long* numbers, int count) {
  static uint64_t round;
  struct meeting* meeting = pair.meeting;
  size_t bytes = (size_t)count * sizeof numbers[0];
  ++round;
  if (pair.self == 0) {
    memcpy(meeting->numbers, numbers, bytes);
    raise_to(&meeting->told, round);
    wait_for(&meeting->heard, round);
  } else {
    wait_for(&meeting->told, round);
    memcpy(numbers, meeting->numbers, bytes);
    raise_to(&meeting->heard, round);
  }
}

/// Both have come here.
static void meet(void) { agree_by_memory((long[1]){0}, 1); }

static void* new_shared(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    perror("bench: mmap");
    exit(3);
  }
  return memory;
}

/// Whether this process may copy from the other one: a sandbox may forbid it.
static bool may_copy(void) {
  char byte;
  struct iovec here = {&byte, 1}, there = {pair.meeting->private_out[!pair.self], 1};
  return process_vm_readv(pair.meeting->process[!pair.self], &here, 1, &there, 1, 0) == 1;
}

/// Copies from the other's private buffer to send from, at a distance from its beginning.
static inline void fetch(unsigned char* to, size_t from, size_t bytes) {
  struct iovec here = {to, bytes}, there = {pair.meeting->private_out[!pair.self] + from, bytes};
  ssize_t got = process_vm_readv(pair.meeting->process[!pair.self], &here, 1, &there, 1, 0);
  if (got != (ssize_t)bytes) {
    perror("bench: process_vm_readv");
    exit(5);
  }
}

static void other_is_gone(int number) {
  (void)number;
  int status = 0;
  if (waitpid(pair.child, &status, WNOHANG) != pair.child) return; // it was stopped or goes on
  if (WIFSIGNALED(status)) {
    char text[] = "bench: the other process was ended by signal 00\n";
    text[sizeof text - 4] = (char)('0' + WTERMSIG(status) / 10);
    text[sizeof text - 3] = (char)('0' + WTERMSIG(status) % 10);
    (void)!write(2, text, sizeof text - 1);
  }
  _exit(5); // else it has said why
}

/// Becomes two processes. Memory that both shall see is made before.
static void start_pair(size_t buffer_bytes) {
  pair.meeting = new_shared(sizeof *pair.meeting);
  signal(SIGCHLD, other_is_gone);
  pair.child = fork();
  if (pair.child < 0) {
    perror("bench: fork");
    exit(3);
  }
  pair.self = pair.child == 0;
  if (pair.self == 1) prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); // Yama: each may copy from the other
  pin_to(core_of(pair.self));
  struct meeting* meeting = pair.meeting;
  meeting->process[pair.self] = getpid();
  meeting->private_out[pair.self] = pair.out = new_buffer_at(0, buffer_bytes);
  meeting->private_in[pair.self] = pair.in = new_buffer_at(0, buffer_bytes);
  const char* stores = choose_stores();
  meet(); // addresses and ids are there
  meeting->facts[pair.self][0] = bound_core();
  meeting->facts[pair.self][1] = may_copy();
  meet();
  pair.cma = meeting->facts[0][1] && meeting->facts[1][1];
  if (pair.self == 1) return;
  printf("info stores %s\ninfo cores %ld %ld\n", stores, meeting->facts[0][0], meeting->facts[1][0]);
  if (!pair.cma) printf("info cma refused: its methods are left out\n");
}

/// The status to exit with.
static int end_pair(void) {
  if (pair.self == 0) signal(SIGCHLD, SIG_DFL); // from here on its end is not a failure
  meet();
  if (pair.self == 1) return 0;
  int status;
  waitpid(pair.child, &status, 0);
  return status ? 5 : 0;
}
