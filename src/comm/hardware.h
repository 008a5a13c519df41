// The parts of a machine that communicators can be split by. Source: MPI 5.0, section 7.4.2, and
// MPI_GET_HW_RESOURCE_INFO in section 9.1.
#pragma once

#include "segment/initial_estimates.h"

#include <span>
#include <string_view>

namespace near::comm {

/// A kind of part: a package, a NUMA node, a cache, a core.
struct Resource {
  std::string_view name; ///< a URI in hwloc's words: "hwloc://NUMANode"
  std::uint16_t segment::Place::* part;
};

/// All kinds, from the largest parts to the smallest.
std::span<const Resource> resources();
/// By its name, with or without "hwloc://"; nullptr when there is no such kind.
const Resource* find_resource(std::string_view name);

} // namespace near::comm
