// What info objects of MPI_Alloc_mem and of windows ask of memory. Source: MPI 5.0, sections 9.2 and 12.2;
// keys that begin with "near_" are ours.
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
  int node = -1;                             ///< near_memory_node: a NUMA node's number; -1: not said
  segment::Tier tier = segment::Tier::count; ///< near_memory_tier: dram, hbm or cxl; count: not said
  std::uint64_t page_bytes = 0;              ///< near_page_size; 0: not said
  std::vector<std::string> remarks;          ///< what was not understood and is ignored, a sentence each
};

/// The standard's kinds of memory that calls take and that the library allocates, as MPI_INFO_ENV and
/// communicators tell them.
inline constexpr std::string_view memory_kinds = "mpi,system";
/// Whether a list as "system,mpi:alloc_mem" names none but these, with the standard's restrictors.
bool are_memory_kinds(std::string_view list);

/// "dram", "hbm", "cxl".
const char* tier_name(segment::Tier tier);

/// `info` may be nullptr. Keys of others are ignored, as the standard wants; one that begins like ours, or
/// that is one slip away from a known one, gets a remark with the nearest. MPI_ERR_INFO_VALUE for an
/// alignment that is no power of two.
base::Result read_memory_hints(const Info* info, MemoryHints& hints);

} // namespace near::object
