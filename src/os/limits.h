// The limits that containers and batch systems set: processors and memory, from all enclosing control groups
// (version 1, version 2, or both mounted side by side).
#pragma once

#include "base/result.h"
#include "os/affinity.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::os {

using base::Result;

/// The memory limit of a control group that encloses this process.
struct MemoryLimit {
  std::uint64_t bytes = 0; ///< the limit
  std::uint64_t used = 0;  ///< bytes in use now, without file pages that the kernel can drop
  std::string group;       ///< folder of the control group
};

/// The processor time limit of a control group that encloses this process.
struct CpuLimit {
  double cpus = 0; ///< processors' worth of time, such as 1.5
  std::string group;
};

/// The limits of this process, from the nearest group outwards. Groups without a limit are omitted.
struct Limits {
  std::vector<MemoryLimit> memory;
  std::vector<CpuLimit> cpu;
  CpuSet cpuset; ///< empty if no control group restricts the processors
  /// The strictest limit, or nullptr.
  const CpuLimit* least_cpu() const;
  const MemoryLimit* least_memory() const;
};

/// Reads the limits of this process. `root` is prefixed to all paths: "" for the real machine; in tests, a
/// folder with proc/self/cgroup, proc/self/mountinfo and the groups' files. A value that cannot be read
/// counts as unlimited.
Limits read_limits(const std::string& root = {});

/// Whether `bytes` more bytes fit into the limits of all enclosing control groups and into the machine's free
/// memory. Fails with Code::no_memory and names the limit. Call this before memory is used, because the
/// kernel kills a process that exceeds a group's limit.
Result check_memory(std::uint64_t bytes, const std::string& root = {});

/// How many processes the kernel has killed because memory ran out. An increase explains a SIGKILL.
struct MemoryKills {
  std::uint64_t group = 0;   ///< in this process's control groups, because of their limit
  std::uint64_t machine = 0; ///< anywhere on the machine
};
MemoryKills read_memory_kills(const std::string& root = {});

} // namespace near::os
