// The processor's counters, or the kernel's, around calls of this process, by perf_event_open: user mode only, and without what
// starting and stopping them counts.
#pragma once

#include "measure.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most_counters = 8 };

struct counter {
  const char* name; // NULL: the end of a list
  uint32_t type;
  uint64_t config;
  int file;
  const char* reason; // why there is no such counter; NULL if there is
  uint64_t from[3];   // value and times at the last mark_counter()
  double empty;       // what one start and stop counts
};

#define CACHE_EVENT(cache, operation, result)                                                                \
  PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##operation << 8 |                \
                          PERF_COUNT_HW_CACHE_RESULT_##result << 16

static struct counter hardware_counters[most_counters] = {
    {.name = "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {.name = "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {.name = "L1D-loads", CACHE_EVENT(L1D, READ, ACCESS)},
    {.name = "L1D-load-misses", CACHE_EVENT(L1D, READ, MISS)},
    {.name = "LLC-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {.name = "dTLB-load-misses", CACHE_EVENT(DTLB, READ, MISS)},
};
// Every kernel has these, also where the processor's are missing: so the code can be tested there.
static struct counter software_counters[most_counters] = {
    {.name = "task-clock-ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {.name = "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {.name = "no-such-event", PERF_TYPE_SOFTWARE, 999},
};

static inline const char* reason_of(int error) {
  static char text[160];
  char level[16] = "unknown";
  FILE* file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
  if (file) {
    if (!fgets(level, sizeof level, file)) snprintf(level, sizeof level, "unknown");
    level[strcspn(level, "\n")] = 0;
    fclose(file);
  }
  switch (error) {
  case ENOENT:
  case ENODEV:
  case EINVAL:
  case EOPNOTSUPP: return "this processor, or the virtual machine, has no such counter";
  case ENOSYS: return "this kernel was built without perf_event_open";
  case EACCES:
  case EPERM:
    snprintf(
        text, sizeof text,
        "the kernel forbids it: /proc/sys/kernel/perf_event_paranoid is %s and must be at most 2, and no "
        "sandbox may refuse perf_event_open",
        level);
    return text;
  default: return strerror(error);
  }
}

static inline void open_counters(struct counter* counters) {
  for (struct counter* my = counters; my->name; ++my) {
    struct perf_event_attr wanted = {.size = sizeof wanted,
                                     .type = my->type,
                                     .config = my->config,
                                     .disabled = 1,
                                     .exclude_kernel = 1,
                                     .exclude_hv = 1};
    wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    my->file = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
    my->reason = my->file < 0 ? reason_of(errno) : NULL;
  }
}

/// Starts all counters of this process together, and stops them: one system call each.
static inline void start_counters(void) { prctl(PR_TASK_PERF_EVENTS_ENABLE); }
static inline void stop_counters(void) { prctl(PR_TASK_PERF_EVENTS_DISABLE); }

/// What has been counted since mark_counter(); more counters than the processor has take turns, and are scaled up.
static inline double read_counter(struct counter* my) {
  uint64_t now[3]; // value, time enabled, time running
  if (my->reason) return 0;
  if (read(my->file, now, sizeof now) != sizeof now) {
    my->reason = "its value cannot be read";
    return 0;
  }
  double value = (double)(now[0] - my->from[0]), enabled = (double)(now[1] - my->from[1]),
         running = (double)(now[2] - my->from[2]);
  if (enabled > 0 && running <= 0) my->reason = "other programs occupy the processor's counters";
  return running > 0 ? value * enabled / running : value;
}

static inline void mark_counter(struct counter* my) {
  if (!my->reason && read(my->file, my->from, sizeof my->from) != sizeof my->from)
    my->reason = "its value cannot be read";
}

/// Measures what a start and a stop count by themselves, and begins to count.
static inline void prepare_counters(struct counter* counters) {
  enum { times = 1000 };
  for (struct counter* my = counters; my->name; ++my) mark_counter(my);
  for (int i = 0; i < times; ++i) {
    start_counters();
    stop_counters();
  }
  for (struct counter* my = counters; my->name; ++my) {
    my->empty = read_counter(my) / times;
    mark_counter(my);
  }
}

/// Prints each counter for one of `calls` calls, or why there is none.
static inline void print_counters(struct counter* counters, const char* variant, size_t bytes, long calls) {
  for (struct counter* my = counters; my->name; ++my) {
    double counted = read_counter(my) / (double)calls - my->empty;
    if (my->reason)
      printf("info missing:%s %s\n", my->name, my->reason);
    else
      print_value(my->name, variant, bytes, counted < 0 ? 0 : counted);
  }
  fflush(stdout);
}
