#include "memory/segments.h"

#include <algorithm>
#include <memory>

namespace near::memory {

base::Result map_segment(int descriptor, std::uint32_t& number) {
  auto& further = space().further;
  auto mapped = std::make_unique<segment::Segment>();
  NEAR_TRY(mapped->attach(descriptor, true));
  NEAR_TRY(mapped->check_reach());
  mapped->close_descriptor(); // closes that of the huge pages; the caller owns the other one
  auto entry = std::find(further.begin(), further.end(), nullptr);
  number = static_cast<std::uint32_t>(entry - further.begin()) + 1;
  if (entry == further.end())
    further.push_back(std::move(mapped));
  else
    *entry = std::move(mapped);
  return {};
}

void unmap_segment(std::uint32_t number) {
  if (number != 0 && number <= space().further.size()) space().further[number - 1].reset();
}

segment::Segment* find_segment(std::uint32_t number) {
  Space& self = space();
  if (number == 0) return self.segment.mapped() ? &self.segment : nullptr;
  return number <= self.further.size() ? self.further[number - 1].get() : nullptr;
}

const segment::Segment* find_segment_of(object::ProcessId process) {
  // Which segment belongs to which other job will be known once jobs connect.
  if (process.job != 0) return nullptr;
  const auto& ranks = space().ranks;
  if (!ranks.empty() && !std::binary_search(ranks.begin(), ranks.end(), process.rank)) return nullptr;
  return find_segment(0);
}

std::uint32_t machine_of(object::ProcessId process) {
  const auto& machines = space().machine_of;
  return machines.empty() || process.job != 0 ? space().machine : machines[process.rank];
}

std::uint32_t row_of(object::ProcessId process) {
  const auto& ranks = space().ranks;
  if (ranks.empty()) return process.rank;
  return static_cast<std::uint32_t>(std::lower_bound(ranks.begin(), ranks.end(), process.rank) -
                                    ranks.begin());
}

std::uint32_t nic_distance(object::ProcessId process) {
  return space().segment.entry(row_of(process)).nic_distance.load_relaxed();
}

segment::Location location_of(object::ProcessId process) {
  return space().segment.mapped() ? space().segment.entry(row_of(process)).location : segment::Location{};
}

object::ProcessId process_in(std::uint32_t row) {
  const auto& ranks = space().ranks;
  return {.rank = ranks.empty() ? row : ranks[row]};
}

bool find_global(const void* address, GlobalAddress& found) {
  const auto count = static_cast<std::uint32_t>(space().further.size());
  for (std::uint32_t number = 0; number <= count; ++number) {
    const segment::Segment* candidate = find_segment(number);
    if (candidate == nullptr || !candidate->contains(address)) continue;
    found = {number, candidate->offset_of(address)};
    return true;
  }
  return false;
}

std::byte* local_address(GlobalAddress address) {
  const segment::Segment* mapped = find_segment(address.segment);
  if (mapped == nullptr || address.offset >= mapped->bytes()) return nullptr;
  return mapped->at<std::byte>(address.offset);
}

} // namespace near::memory
