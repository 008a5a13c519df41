// `near info --transport`: for each pair of ranks of a running job that exchanged large messages, the protocol by
// size, how fast it was, and what the others would achieve.
#include "base/text.h"
#include "segment/activity.h"
#include "tools/commands.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

namespace near::tools {

namespace {

std::string rate(std::uint32_t nanoseconds_per_mib) {
  if (nanoseconds_per_mib == 0) return "not known";
  return base::format("{:.1f} GB/s", 1048576.0 / nanoseconds_per_mib);
}

std::string size_text(std::uint64_t bytes) {
  return bytes < 1u << 20 ? base::format("{} KiB", bytes >> 10) : base::format("{} MiB", bytes >> 20);
}

std::string class_text(int size_class) {
  std::uint64_t from = std::uint64_t{4096} << size_class;
  if (size_class == 0) return "below 8 KiB";
  if (size_class == segment::size_classes - 1) return size_text(from) + " and more";
  return base::format("{} to {}", size_text(from), size_text(2 * from));
}

/// What `owner` has learnt about the others; nullptr if its recorded position is outside its region or
/// invalid. Data written by another process are not relied on.
const segment::PairStatistics* statistics_of(const segment::Segment& segment, std::uint32_t owner) {
  segment::Offset at = base::load_once(segment.control(owner).statistics), region = segment.region(owner);
  std::uint64_t bytes = segment.rows() * sizeof(segment::PairStatistics);
  bool within = at >= region && bytes <= segment.stride() && at - region <= segment.stride() - bytes;
  return within && at % alignof(segment::PairStatistics) == 0 ? segment.at<segment::PairStatistics>(at)
                                                              : nullptr;
}

/// The weakest basis of the costs that were compared.
segment::Basis reason(const segment::ProtocolStatistics& row, std::uint32_t present) {
  auto basis = static_cast<segment::Basis>(row.basis[present].load_relaxed());
  if (basis == segment::Basis::named) return basis;
  for (std::uint32_t protocol = 0; protocol < segment::protocols; ++protocol)
    if (row.cost[protocol].load_relaxed() != 0)
      basis = std::min(basis, static_cast<segment::Basis>(row.basis[protocol].load_relaxed()));
  return basis;
}

/// The other protocols with their rates, and the source of those that nobody in this job has measured.
std::string others(const segment::ProtocolStatistics& row, std::uint32_t present) {
  std::string text;
  for (std::uint32_t protocol = 0; protocol < segment::protocols; ++protocol) {
    std::uint32_t cost = row.cost[protocol].load_relaxed();
    if (protocol == present || cost == 0) continue;
    text += base::format("{}{} {}", text.empty() ? "" : ", ",
                         segment::protocol_name(static_cast<segment::Protocol>(protocol)), rate(cost));
    auto basis = static_cast<segment::Basis>(row.basis[protocol].load_relaxed());
    if (basis < segment::Basis::measured) text += base::format(" ({})", segment::basis_name(basis));
  }
  return text.empty() ? "no other was possible or tried" : text;
}

bool has_statistics(const segment::ControlPage& control, std::uint32_t other) {
  return other / 64 < std::size(control.with_statistics) &&
         (control.with_statistics[other / 64].load_relaxed() >> other % 64 & 1) != 0;
}

void print_class(const segment::ProtocolStatistics& statistics, const std::string& size, std::uint32_t owner,
                 std::uint32_t other) {
  std::uint32_t present = statistics.present.load_relaxed(), messages = statistics.messages.load_relaxed();
  if (messages == 0) return;
  bool settled = present < segment::protocols;
  std::printf("%4u to %-4u  %-24s %-9s %11s %10u  %-9s  %s\n", other, owner, size.c_str(),
              settled ? segment::protocol_name(static_cast<segment::Protocol>(present)) : "-",
              settled ? rate(statistics.cost[present].load_relaxed()).c_str() : "", messages,
              settled ? segment::basis_name(reason(statistics, present)) : "-",
              settled ? others(statistics, present).c_str() : "still trying");
}

void print_pair(const segment::PairStatistics& row, std::uint32_t owner, std::uint32_t other) {
  for (int size_class = 0; size_class < segment::size_classes; ++size_class) {
    const std::string size = class_text(size_class);
    print_class(row.from_it[size_class], size, owner, other);
    print_class(row.with_gaps[size_class], size + ", gaps", owner, other);
  }
}

void print_stores(const segment::PairStatistics& row, std::uint32_t owner, std::uint32_t other) {
  std::uint32_t cached = row.store_cost[0].load_relaxed(), streaming = row.store_cost[1].load_relaxed();
  if (cached == 0 && streaming == 0) return;
  std::printf("%4u to %-4u  %-9s  cached %s, streaming %s\n", owner, other,
              row.streaming.load_relaxed() != 0 ? "streaming" : "cached", rate(cached).c_str(),
              rate(streaming).c_str());
}

} // namespace

int transport(std::int32_t launcher) {
  segment::Segment segment;
  if (!segment::attach_job(launcher, segment).ok()) return complain();
  auto each_pair = [&](auto&& print) {
    for (std::uint32_t owner = 0; owner < segment.rows(); ++owner) {
      if (!segment::has_region(segment, owner)) continue;
      const auto* rows = statistics_of(segment, owner);
      for (std::uint32_t other = 0; rows != nullptr && other < segment.rows(); ++other)
        if (has_statistics(segment.control(owner), other)) print(rows[other], owner, other);
    }
  };
  const auto& estimates = segment.header().estimates;
  std::string measured(estimates.measured, strnlen(estimates.measured, sizeof estimates.measured));
  std::printf("The ranks began with %s%s.\n\n",
              estimates.basis == segment::Basis::profile ? "the machine's profile, measured "
                                                         : "what is built in: mpiexec found no profile",
              base::printable(measured).c_str());
  std::puts("Large messages: the protocol that their receiver takes, and what that was decided by\n"
            "       ranks  size                     protocol         rate   messages  reason     the other "
            "protocols");
  each_pair(print_pair);
  std::puts("\nStores that fill packets, as the sender measured its copies\n       ranks  in use");
  each_pair(print_stores);
  return 0;
}

} // namespace near::tools
