// The segments that this process has mapped, and addresses that mean the same in every process that has mapped them.
//
// Number 0 is the segment of this process's own job (Space::segment). Jobs that connect map each other's segments as
// further ones. Numbers are this process's own: another one may have mapped the same segments in another order.
#pragma once

#include "memory/space.h"

namespace near::memory {

/// A byte of a mapped segment.
struct GlobalAddress {
  std::uint32_t segment = 0;
  segment::Offset offset = 0;
  bool operator==(const GlobalAddress&) const = default;
};

/// Maps the segment of another job in addition to those that are mapped already. `descriptor` stays the caller's.
/// Returns in `number` what names the segment here; the smallest free number is taken. Fails if the descriptor is not
/// a NearMPI segment of this layout version, or if there are too few addresses.
base::Result map_segment(int descriptor, std::uint32_t& number);

/// Unmaps a further segment. Global addresses in it mean nothing from then on. Does nothing if the number is 0 or not
/// in use.
void unmap_segment(std::uint32_t number);

/// The segment with this number, or nullptr if none has it.
segment::Segment* find_segment(std::uint32_t number);

/// Finds the segment that a local address lies in. Returns false if it lies in none: then it is private memory.
bool find_global(const void* address, GlobalAddress& found);

/// Where a global address is mapped in this process; nullptr if its segment is not mapped or is smaller.
std::byte* local_address(GlobalAddress address);

} // namespace near::memory
