#include "topo/slots.h"

#include "base/text.h"

#include <algorithm>
#include <cmath>

namespace near::topo {

Slots count_slots(const CpuSet& affinity, const os::Limits& limits) {
  Slots slots;
  slots.allowed = affinity;
  slots.reason = base::format("affinity mask {}", affinity.count());
  if (!limits.cpuset.empty()) {
    slots.reason += base::format(", cpuset {}", limits.cpuset.count());
    CpuSet both = affinity & limits.cpuset;
    if (!both.empty()) slots.allowed = both;
  }
  slots.count = slots.allowed.count();
  if (const auto* cpu = limits.least_cpu()) {
    slots.reason += base::format(", cpu.max {:.4g}", cpu->cpus);
    slots.count = std::min(slots.count, static_cast<unsigned>(std::ceil(cpu->cpus)));
  }
  slots.count = std::max(slots.count, 1u);
  return slots;
}

Slots slots_of_recorded(const Machine& machine) {
  Slots slots;
  slots.allowed = machine.allowed & machine.cpus();
  slots.count = std::max(slots.allowed.count(), 1u);
  slots.reason =
      base::format("recorded machine, {} allowed", base::counted(slots.allowed.count(), "processor"));
  return slots;
}

} // namespace near::topo
