// See job_share.h.
#include "transport/job_share.h"

#include "memory/space.h"
#include "os/clock.h"

#include <algorithm>
#include <new>

namespace near::transport {
namespace {

/// The kernel counts the time of processors in hundredths of a second. After a second without a call, what is known of the ranks and of
/// their bindings is forgotten.
constexpr std::uint64_t shortest_ns = os::second_ns / 10, longest_ns = os::second_ns;

} // namespace

bool JobShare::others_run(std::uint64_t now_ns) {
  const std::uint64_t time_ns = now_ns - since_ns_;
  const bool is_first = since_ns_ == 0 || time_ns > longest_ns;
  if (!is_first && time_ns < shortest_ns) return others_run_;
  try {
    if (is_first) find_ranks();
    Times now;
    if (!measure(now)) return true; // a long yield is all that is known then
    others_run_ = !is_first && others_ran(processors_.count(), time_ns, since_, now);
    since_ns_ = now_ns;
    since_ = now;
  } catch (const std::bad_alloc&) { return true; }
  return others_run_;
}

bool JobShare::others_ran(unsigned processors, std::uint64_t time_ns, Times before, Times after) {
  // Ranks that have ended have no time.
  const std::uint64_t known_ns = after.idle_ns - std::min(before.idle_ns, after.idle_ns) + after.ranks_ns -
                                 std::min(before.ranks_ns, after.ranks_ns);
  return 6 * known_ns < 5 * processors * time_ns;
}

void JobShare::find_ranks() {
  const memory::Space& self = memory::space();
  ranks_.clear();
  os::CpuSet ours;
  if (!os::affinity_of(0, ours).ok()) return;
  processors_ = ours;
  if (!self.segment.mapped()) return;
  for (std::uint32_t row = 0; row < self.segment.rows(); ++row) {
    const auto pid = static_cast<std::int32_t>(self.segment.entry(row).claimed.load_relaxed());
    os::CpuSet theirs;
    if (row == self.row || pid == 0 || !os::affinity_of(pid, theirs).ok() || (theirs & ours).empty())
      continue;
    processors_ = processors_ | theirs;
    ranks_.push_back(pid);
  }
}

bool JobShare::measure(Times& times) const {
  if (!os::idle_time(processors_, times.idle_ns)) return false;
  // Other threads of this process may compute, and compete with this one like another program.
  times.ranks_ns = os::thread_cpu_ns();
  for (const std::int32_t pid : ranks_) times.ranks_ns += os::process_cpu_ns(pid);
  return true;
}

} // namespace near::transport
