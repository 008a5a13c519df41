// The parts of a machine by which communicators can be split. Source: MPI 5.0, section 7.4.2, and
// MPI_GET_HW_RESOURCE_INFO in section 9.1.
#pragma once

#include "segment/initial_estimates.h"

#include <span>
#include <string_view>

namespace near::comm {

inline constexpr std::string_view scheme = "hwloc://";
/// hwloc's name for the whole machine. Each process uses one machine.
inline constexpr std::string_view machine_resource = "hwloc://Machine";

/// A kind of part, such as a package, a NUMA node, a cache or a core.
struct Resource {
  std::string_view name; ///< a URI with hwloc's name of the kind: "hwloc://NUMANode"
  std::uint16_t segment::Location::* part;
};

/// All kinds, from the largest part to the smallest.
std::span<const Resource> resources();
/// Finds a kind by its name, with or without "hwloc://". Returns nullptr if there is none.
const Resource* find_resource(std::string_view name);

} // namespace near::comm
