// See job_share.h.
#include "transport/job_share.h"

#include "memory/space.h"
#include "os/clock.h"

#include <algorithm>
#include <new>
#include <unistd.h>
#include <utility>

namespace near::transport {
namespace {

/// After this time without a call, the last measurement is out of date.
constexpr std::uint64_t longest_ns = 2 * os::second_ns;

/// The kernel counts the idle time of each processor in hundredths of a second, so an interval must be long compared with these.
std::uint64_t shortest_ns(unsigned processors) {
  return std::min(os::second_ns / 10 + processors * os::second_ns / 100, os::second_ns);
}

} // namespace

bool JobShare::others_run() {
  const std::uint64_t passed_ns = os::monotonic_ns() - since_ns_;
  const bool is_first = since_ns_ == 0 || passed_ns > longest_ns;
  if (!is_first && passed_ns < shortest_ns(processors_.count())) return others_run_;
  try {
    Interval interval{};
    others_run_ = measure(interval) && !is_first && others_ran(processors_.count(), interval);
  } catch (const std::bad_alloc&) { others_run_ = false; }
  return others_run_;
}

bool JobShare::others_ran(unsigned processors, const Interval& interval) {
  const std::uint64_t all = processors * interval.time, known = interval.idle + interval.ranks;
  return all > known && 3 * (all - known) > interval.time;
}

bool JobShare::measure(Interval& interval) {
  const memory::Space& self = memory::space();
  const std::uint64_t now_ns = os::monotonic_ns();
  interval.time = now_ns - since_ns_;
  since_ns_ = now_ns;
  os::CpuSet ours;
  if (os::read_affinity(0, ours) != 0) return false;
  const os::CpuSet processors_before = std::exchange(processors_, ours);
  before_.swap(ranks_);
  ranks_.clear();
  interval.ranks = add_rank(getpid(), ours, interval.time);
  for (std::uint32_t row = 0; self.segment.mapped() && row < self.segment.rows(); ++row) {
    const auto pid = static_cast<std::int32_t>(self.segment.entry(row).claimed.load_relaxed());
    os::CpuSet theirs;
    if (row == self.row || pid == 0 || pid == getpid() || os::read_affinity(pid, theirs) != 0 ||
        (theirs & ours).empty())
      continue;
    processors_ = processors_ | theirs;
    interval.ranks += add_rank(pid, theirs, interval.time);
  }
  const std::uint64_t idle_before_ns = idle_ns_;
  if (!os::idle_time(processors_, idle_ns_)) return false;
  interval.idle = idle_ns_ - std::min(idle_before_ns, idle_ns_);
  return processors_ == processors_before;
}

std::uint64_t JobShare::add_rank(std::int32_t pid, const os::CpuSet& cpus, std::uint64_t time_ns) {
  const std::uint64_t used_ns = os::process_cpu_ns(pid);
  ranks_.push_back({pid, used_ns});
  const auto before =
      std::find_if(before_.begin(), before_.end(), [&](const Rank& rank) { return rank.pid == pid; });
  if (before == before_.end() || before->used_ns > used_ns) return 0;
  return std::min(used_ns - before->used_ns, cpus.count() * time_ns); // its threads may also run elsewhere
}

} // namespace near::transport
