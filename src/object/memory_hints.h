// What the info objects of MPI_Alloc_mem and of windows request for the memory. Source: MPI 5.0, sections 9.2
// and 12.2; keys that begin with "near_" are ours.
#pragma once

#include "base/result.h"
#include "object/info.h"
#include "segment/initial_estimates.h"

#include <string>
#include <string_view>
#include <vector>

namespace near::object {

struct MemoryHints {
  std::size_t alignment = 64;                ///< mpi_minimum_memory_alignment; at least a cache line
  int node = -1;                             ///< near_memory_node: a NUMA node's number; -1: not given
  segment::Tier tier = segment::Tier::count; ///< near_memory_tier: dram, hbm or cxl; count: not given
  std::uint64_t page_bytes = 0;              ///< near_page_size; 0: not given
  std::vector<std::string> remarks;          ///< a sentence about each ignored key or value
};

/// The standard's kinds of memory that calls accept and that the library allocates, as reported by
/// MPI_INFO_ENV and communicators.
inline constexpr std::string_view memory_kinds = "mpi,system";
/// Whether a list such as "system,mpi:alloc_mem" names only these kinds, with the standard's restrictors.
bool are_memory_kinds(std::string_view list);

/// The name of a kind of memory in hints: "dram", "hbm" or "cxl".
const char* tier_name(segment::Tier tier);

/// Reads the hints in `info`, which may be nullptr. Unknown keys are ignored, as the standard requires; a key
/// that begins with "near_", or that looks like a misspelt known key, yields a remark that names the nearest
/// one. Fails with MPI_ERR_INFO_VALUE if an alignment is not a power of two.
base::Result read_memory_hints(const Info* info, MemoryHints& hints);

} // namespace near::object
