// What the job's segment says about this process: its location, its state lines, its counters.
#include "os/affinity.h"
#include "transport/polling.h"
#include "transport/registry.h"
#include "transport/watch_start.h"

#include <algorithm>

namespace near::transport {

namespace {

/// Returns this process's control page, or one that nothing reads if this process has no segment.
segment::ControlPage& control() {
  const memory::Space& self = memory::space();
  if (self.segment.mapped()) return self.segment.control(self.row);
  static segment::ControlPage unread{};
  return unread;
}

} // namespace

const segment::Segment& job_segment() { return memory::space().segment; }

segment::StateLine& own_state_line() {
  static base::Atomic<std::uint32_t> threads{0};
  thread_local std::uint32_t line = threads.add_relaxed(1);
  return control().state[std::min<std::uint32_t>(line, segment::state_lines - 1)];
}

segment::Location own_location() {
  return running() && job_segment().mapped() ? job_segment().entry(memory::space().row).location
                                             : segment::Location{};
}

segment::NearestNodes nearest_nodes() {
  return running() && job_segment().mapped() ? job_segment().entry(memory::space().row).nearest
                                             : segment::NearestNodes{};
}

std::uint32_t universe_size() {
  const auto& head = job_segment().header();
  return std::max(head.job_size, head.cores);
}

bool is_first_with_fatal_error() {
  return !job_segment().mapped() ||
         segment::first_to_say(job_segment().header(), segment::Notice::fatal_error);
}

void abort_job(const boot::Start& start, int code, segment::Abort how) {
  boot::abort_job(start, job_segment(), code, how);
}

base::Result begin_watch(const boot::Start& start, std::span<const boot::Neighbour> next,
                         std::uint32_t patience) {
  return boot::begin_watch(start, job_segment(), next, patience);
}

void count_unexpected() { control().counters.unexpected.bump_relaxed(1); }

void count_sent_elsewhere(std::uint64_t bytes) {
  segment::Counters& counters = control().counters;
  counters.network_messages.bump_relaxed(1);
  counters.network_bytes.bump_relaxed(bytes);
}

void count_handed(std::uint64_t complete, std::uint64_t taken_back) {
  segment::Counters& counters = control().counters;
  counters.handed.bump_relaxed(complete);
  counters.taken_back.bump_relaxed(taken_back);
}

segment::Amount own_sent_elsewhere() {
  if (!job_segment().mapped()) return {};
  const segment::Counters& counters = control().counters;
  return {counters.network_messages.load_relaxed(), counters.network_bytes.load_relaxed()};
}

segment::Amount own_traffic(segment::Path path) {
  if (!job_segment().mapped()) return {};
  const std::uint32_t processes = job_segment().rows();
  const auto* sent =
      job_segment().at<segment::Traffic>(control().traffic) + static_cast<std::size_t>(path) * processes;
  // Reading our own table may allocate a page of it, but on the right node, and only on request.
  segment::Amount sum;
  for (std::uint32_t to = 0; to < processes; ++to)
    sum += {sent[to].messages.load_relaxed(), sent[to].bytes.load_relaxed()};
  return sum;
}

int shared_processors() {
  if (!job_segment().mapped()) return 0;
  const auto& head = job_segment().header();
  return head.cores < head.job_size ? static_cast<int>(head.cores) : 0;
}

bool polls_should_yield() { return wait_settings.oversubscribed || wait_settings.may_yield_to_learn; }

bool shares_its_processors() {
  const memory::Space& self = memory::space();
  os::CpuSet ours;
  if (!os::affinity_of(0, ours).ok()) return false;
  std::uint32_t ranks = self.row < self.job_size ? 0 : 1; // this one, if it has joined later
  for (std::uint32_t rank = 0; rank < self.job_size; ++rank) {
    os::CpuSet theirs;
    auto pid = static_cast<std::int32_t>(self.segment.entry(rank).claimed.load_relaxed());
    if (!os::affinity_of(rank == self.row ? 0 : pid, theirs).ok()) continue; // in another namespace, or ended
    ranks += (theirs & ours) == theirs;
  }
  return ranks > ours.count();
}

} // namespace near::transport
