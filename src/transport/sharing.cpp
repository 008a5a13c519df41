// See polling.h.
#include "os/affinity.h"
#include "transport/engine.h"
#include "transport/polling.h"

namespace near::transport {

bool shares_its_processors() {
  const Engine& self = engine();
  os::CpuSet ours;
  if (!os::affinity_of(0, ours).ok()) return false;
  std::uint32_t ranks = 0;
  for (std::uint32_t slot = 0; slot < self.job_size; ++slot) {
    os::CpuSet theirs;
    auto pid = static_cast<std::int32_t>(memory::space().segment.entry(slot).claimed.load_relaxed());
    if (!os::affinity_of(slot == self.slot ? 0 : pid, theirs).ok())
      continue; // in another namespace, or ended
    ranks += (theirs & ours) == theirs;
  }
  return ranks > ours.count();
}

} // namespace near::transport
