#include "segment/activity.h"

#include "base/seqlock.h"
#include "segment/traffic.h"

namespace near::segment {
namespace {

// A process that died while writing its line leaves the number odd, so the reader gives up after some
// attempts.
constexpr int attempts = 100;

Activity read_line(const StateLine& line) {
  using Lock = base::Seqlock<>;
  Activity copy;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uint32_t before = Lock::begin_read(line.sequence);
    copy.function = Lock::get(line.function);
    copy.context = Lock::get(line.context);
    copy.peer = Lock::get(line.peer);
    copy.tag = Lock::get(line.tag);
    copy.bytes = Lock::get(line.bytes);
    copy.since_ns = Lock::get(line.since_ns);
    copy.calls = Lock::get(line.calls);
    copy.consistent = Lock::is_consistent(line.sequence, before);
    if (copy.consistent) break;
    base::cpu_relax();
  }
  return copy;
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? base::format("{} B", bytes) : base::format("{:.1f} {}", value, units[unit]);
}

} // namespace

bool has_region(const Segment& segment, std::uint32_t row) {
  auto& entry = segment.entry(row);
  // SYNC: rank-phase. Acquire: the region was laid out before the phase became `ready`.
  auto phase = static_cast<Phase>(entry.phase.load_acquire());
  if (phase == Phase::ready || phase == Phase::finalized) return true;
  auto before = static_cast<Phase>(entry.died_in.load_relaxed());
  return phase == Phase::dead && (before == Phase::ready || before == Phase::finalized);
}

Activity activity_of(const Segment& segment, std::uint32_t row) {
  auto& control = segment.control(row);
  Activity best = read_line(control.state[0]);
  for (int line = 1; line < state_lines && best.function == 0; ++line) {
    auto other = read_line(control.state[line]);
    if (other.function != 0) {
      other.calls = best.calls;
      best = other;
    }
  }
  return best;
}

std::string activity_text(const Activity& activity, const Functions& functions, std::uint64_t now_ns) {
  if (activity.function == 0) return "its own code";
  const char* known = functions.name != nullptr ? functions.name(activity.function) : nullptr;
  std::string text = known != nullptr ? known : base::format("MPI function {}", activity.function);
  if (functions.tells == nullptr || functions.tells(activity.function)) {
    if (activity.peer >= 0) text += base::format(", rank {}", activity.peer);
    if (activity.peer >= 0 && activity.tag >= 0) text += base::format(", tag {}", activity.tag);
    if (activity.bytes > 0) text += ", " + bytes_text(activity.bytes);
  }
  if (activity.since_ns != 0 && now_ns > activity.since_ns)
    text += base::format(", for {:.1f} s", static_cast<double>(now_ns - activity.since_ns) * 1e-9);
  return text;
}

const char* phase_name(Phase phase) {
  switch (phase) {
  case Phase::empty: return "not started";
  case Phase::launched: return "before MPI_Init";
  case Phase::ready: return "running";
  case Phase::finalized: return "finalized";
  case Phase::dead: return "ended";
  }
  return "unknown";
}

std::string job_table(const Segment& segment, int descriptor, const Functions& functions,
                      std::uint64_t now_ns, std::span<const std::int32_t> pids,
                      std::span<const unsigned> ranks) {
  std::string table = base::format("{:>5} {:>8} {:<15} {:>10} {:>10} {:>11} {:>10}  {}\n", "rank", "pid",
                                   "phase", "calls", "messages", "sent", "unexpected", "doing");
  for (std::uint32_t row = 0; row < segment.job_size(); ++row) {
    auto& entry = segment.entry(row);
    const unsigned rank = row < ranks.size() ? ranks[row] : entry.rank;
    // SYNC: rank-phase. Acquire: the exit status was written before `dead`.
    auto phase = static_cast<Phase>(entry.phase.load_acquire());
    if (row < pids.size() && pids[row] == 0) {
      table += base::format("{:>5} {:>8} not started\n", rank, "-");
      continue;
    }
    auto pid = row < pids.size() ? pids[row] : static_cast<std::int32_t>(entry.pid.load_relaxed());
    table += base::format("{:>5} {:>8} {:<15}", rank, pid, phase_name(phase));
    if (has_region(segment, row)) {
      auto activity = activity_of(segment, row);
      Amount sent = sent_elsewhere(segment, row);
      for (const auto& [to, by_path] : traffic_of(segment, descriptor, row))
        for (const Amount& amount : by_path) sent += amount;
      table += base::format(" {:>10} {:>10} {:>11} {:>10}  {}", activity.calls, sent.messages,
                            bytes_text(sent.bytes), segment.control(row).counters.unexpected.load_relaxed(),
                            phase == Phase::ready ? activity_text(activity, functions, now_ns) : "");
    }
    while (!table.empty() && table.back() == ' ') table.pop_back();
    table += '\n';
  }
  return table;
}

} // namespace near::segment
