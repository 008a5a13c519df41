// The segments that this process has mapped, and addresses that consist of a segment and an offset.
//
// Number 0 is the segment of this process's own job (Space::segment). Jobs that connect also map each other's
// segments. The numbers are valid only in this process: another one may have mapped the same segments in a
// different order.
#pragma once

#include "memory/space.h"
#include "object/group.h"

namespace near::memory {

/// A byte of a mapped segment.
struct GlobalAddress {
  std::uint32_t segment = 0;
  segment::Offset offset = 0;
  bool operator==(const GlobalAddress&) const = default;
};

/// Maps the segment of another job in addition to those already mapped, and sets `number` to the smallest
/// free number. The caller remains the owner of `descriptor`. Fails if the descriptor does not refer to a
/// NearMPI segment of this layout version, or if too few addresses are free.
base::Result map_segment(int descriptor, std::uint32_t& number);

/// Unmaps the segment with this number. Global addresses in it become invalid. Has no effect if the number is
/// 0 or not in use.
void unmap_segment(std::uint32_t number);

/// Returns the segment with this number, or nullptr if there is none.
segment::Segment* find_segment(std::uint32_t number);

/// Returns the segment of a process's job on its machine, or nullptr if this process has not mapped it. Offsets that a
/// process sends to others refer to this segment.
const segment::Segment* find_segment_of(object::ProcessId process);

/// Returns the number of a process's machine in its job; all processes get the same result.
std::uint32_t machine_of(object::ProcessId process);

/// Returns the row of a process in its segment, which this process has mapped (find_segment_of()).
std::uint32_t row_of(object::ProcessId process);
/// Returns the distance of such a process from its NIC: RankEntry::nic_distance.
std::uint32_t nic_distance(object::ProcessId process);
/// Returns where such a process runs: RankEntry::location. Unknown parts are Location::several.
segment::Location location_of(object::ProcessId process);
/// Returns the process in a row of the segment of this process's job.
object::ProcessId process_in(std::uint32_t row);

/// Converts a local address to a global one. Returns false if the address lies in none of the mapped
/// segments, so that it is private memory.
bool find_global(const void* address, GlobalAddress& found);

/// Returns where a global address is mapped in this process, or nullptr if its segment is not mapped or is
/// shorter.
std::byte* local_address(GlobalAddress address);

} // namespace near::memory
