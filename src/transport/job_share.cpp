// See job_share.h.
#include "transport/job_share.h"

#include "memory/space.h"
#include "os/affinity.h"
#include "os/clock.h"

#include <new>

namespace near::transport {
namespace {

/// A second; afterwards what is known of the ranks and of their bindings is forgotten.
constexpr std::uint64_t longest_ns = os::second_ns;

} // namespace

bool JobShare::others_run(std::uint64_t now_ns) {
  const std::uint64_t before_ns = since_ns_, used_before_ns = used_ns_;
  const bool is_first = before_ns == 0 || now_ns - before_ns > longest_ns;
  if (is_first) try {
      find_ranks();
    } catch (const std::bad_alloc&) {
      ranks_.clear(); // then all others seem to run
    }
  since_ns_ = now_ns;
  used_ns_ = time_used();
  return !is_first && 10 * (used_ns_ - used_before_ns) < 9 * processors_ * (now_ns - before_ns);
}

void JobShare::find_ranks() {
  const memory::Space& self = memory::space();
  ranks_.clear();
  os::CpuSet ours, all;
  if (!os::affinity_of(0, ours).ok()) return;
  all = ours;
  if (!self.segment.mapped()) return;
  for (std::uint32_t row = 0; row < self.segment.rows(); ++row) {
    const auto pid = static_cast<std::int32_t>(self.segment.entry(row).claimed.load_relaxed());
    os::CpuSet theirs;
    if (row == self.row || pid == 0 || !os::affinity_of(pid, theirs).ok() || (theirs & ours).empty())
      continue;
    all = all | theirs;
    ranks_.push_back(pid);
  }
  processors_ = all.count();
}

std::uint64_t JobShare::time_used() const {
  // Other threads of this process may compute, and compete with this one like another program.
  std::uint64_t sum = os::thread_cpu_ns();
  for (const std::int32_t pid : ranks_) sum += os::process_cpu_ns(pid);
  return sum;
}

} // namespace near::transport
