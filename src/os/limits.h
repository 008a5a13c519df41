// The limits that containers and batch systems set: processors and memory, from every enclosing control group
// (version 1, version 2, or both mounted side by side).
#pragma once

#include "base/result.h"
#include "os/affinity.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::os {

using base::Result;

/// A memory limit of one control group that encloses this process.
struct MemoryLimit {
  std::uint64_t bytes = 0; ///< the limit
  std::uint64_t used = 0;  ///< of it, now; without file pages that the kernel can drop
  std::string group;       ///< folder of the control group
};

/// A processor time limit of one control group.
struct CpuLimit {
  double cpus = 0; ///< processors' worth of time, e.g. 1.5
  std::string group;
};

/// What this process may use. Groups without a limit are left out; nearest first.
struct Limits {
  std::vector<MemoryLimit> memory;
  std::vector<CpuLimit> cpu;
  CpuSet cpuset; ///< empty: no control group says anything
  /// The strictest, or nullptr.
  const CpuLimit* least_cpu() const;
  const MemoryLimit* least_memory() const;
};

/// Reads them. `root` stands before every path: "" on the real machine, a folder with proc/self/cgroup,
/// proc/self/mountinfo and the groups' files in tests. What cannot be read is no limit.
Limits read_limits(const std::string& root = {});

/// Whether so many more bytes fit every enclosing control group's limit and the machine's free memory.
/// Code::no_memory names the limit. Asked before pages are taken, because beyond a group's limit the kernel
/// kills instead of refusing.
Result check_memory(std::uint64_t bytes, const std::string& root = {});

/// How often the kernel killed a process because memory ran out. A count that grew tells what a SIGKILL was.
struct MemoryKills {
  std::uint64_t group = 0;   ///< in this process's control groups, because a limit was met
  std::uint64_t machine = 0; ///< anywhere on the machine
};
MemoryKills read_memory_kills(const std::string& root = {});

} // namespace near::os
