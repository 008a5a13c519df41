// How many ranks fit on a machine without sharing a processor.
#pragma once

#include "os/limits.h"
#include "topo/machine.h"

#include <string>

namespace near::topo {

/// How many ranks fit without sharing a processor.
struct Slots {
  unsigned count = 1;
  CpuSet allowed;     ///< the processors that may be used
  std::string reason; ///< "2: affinity mask 4, cpuset 4, cpu.max 1.5"
};
/// Counts the slots: the minimum of affinity mask, cpuset, and processor time rounded up; at least 1.
Slots count_slots(const CpuSet& affinity, const os::Limits& limits);
/// The slots of a recorded machine: what its description allows.
Slots slots_of_recorded(const Machine& machine);

} // namespace near::topo
