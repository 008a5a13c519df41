// What the ranks of a job assume of copies before they have made any: the machine's profile (near calibrate),
// else what is built in. mpiexec puts it into the segment's header, so that no rank reads a file and all
// begin alike.
#pragma once

#include "segment/statistics.h"

#include <array>

namespace near::segment {

/// The smallest part of the machine that two processors share.
enum class Distance : std::uint8_t { core, l3, numa, package, machine, count };
inline constexpr std::size_t distances = static_cast<std::size_t>(Distance::count);
/// "core", "l3", "numa", "package", "machine".
const char* distance_name(Distance distance);

/// Where a process runs: the numbers of the parts that hold every processor which it may use.
struct Place {
  static constexpr std::uint16_t several = 0xffff; ///< they lie in more than one, or nobody knows
  std::uint16_t core = several, l2 = several, l3 = several, numa = several, package = several;
};
/// Kinds of memory: the ordinary one; faster (HBM, MCDRAM); slower (CXL, persistent).
enum class Tier : std::uint8_t { dram, hbm, slow, count };
inline constexpr std::size_t tiers = static_cast<std::size_t>(Tier::count);

/// The NUMA nodes of each kind that are nearest to a process, by the kernel's numbers.
struct NearestNodes {
  static constexpr std::int16_t none = -1; ///< the machine has no such memory, or nobody knows
  std::array<std::int16_t, tiers> of = {none, none, none};
};

/// Of two processes. Without a common part: Distance::machine.
Distance distance_between(const Place& one, const Place& other);

/// What two processes so far apart assume of each other: nanoseconds a MiB; 0: nothing.
struct PairEstimates {
  std::array<std::array<std::uint32_t, protocols>, size_classes> cost;
  /// Of the copy into a packet: with cached, with streaming stores.
  std::array<std::uint32_t, 2> store_cost;
};

struct InitialEstimates {
  Basis basis;       ///< Basis::built_in or Basis::profile
  char measured[28]; ///< when, for people; "" when built in
  std::array<PairEstimates, distances> pair;
};

/// What is assumed of a machine that nobody has measured.
InitialEstimates built_in_estimates();

} // namespace near::segment
