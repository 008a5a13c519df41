// What the ranks of a job assume about the cost of copies before they have made any: the machine's profile
// (near calibrate), or otherwise built-in values. mpiexec puts them into the segment's header, so that no
// rank reads a file and all start with the same estimates.
#pragma once

#include "segment/statistics.h"

#include <array>

namespace near::segment {

/// The smallest part of the machine that two processors share.
enum class Distance : std::uint8_t { core, l3, numa, package, machine, count };
inline constexpr std::size_t distances = static_cast<std::size_t>(Distance::count);
/// The name of a distance: "core", "l3", "numa", "package" or "machine".
const char* distance_name(Distance distance);

/// Where a process runs: for each kind of part, the one that contains all processors that the process may
/// use.
struct Location {
  static constexpr std::uint16_t several = 0xffff; ///< they are in more than one part, or the part is unknown
  std::uint16_t core = several, l2 = several, l3 = several, numa = several, package = several;
};
/// Kinds of memory: ordinary; faster (HBM, MCDRAM); slower (CXL, persistent).
enum class Tier : std::uint8_t { dram, hbm, slow, count };
inline constexpr std::size_t tiers = static_cast<std::size_t>(Tier::count);

/// The nearest NUMA node of each kind of memory, by the kernel's numbers.
struct NearestNodes {
  static constexpr std::int16_t none = -1; ///< the machine has no such memory, or it is unknown
  std::array<std::int16_t, tiers> of = {none, none, none};
};

/// The distance between two processes; Distance::machine if they have no part in common.
Distance distance_between(const Location& one, const Location& other);

/// The estimates for two processes at a given distance, in nanoseconds per MiB; 0 if unknown.
struct PairEstimates {
  std::array<std::array<std::uint32_t, protocols>, size_classes> cost;
  /// For the copy into a packet: with cached stores, with streaming stores.
  std::array<std::uint32_t, 2> store_cost;
};

struct InitialEstimates {
  Basis basis;       ///< Basis::built_in or Basis::profile
  char measured[28]; ///< when it was measured, for display; "" if built in
  std::array<PairEstimates, distances> pair;
};

/// The estimates for a machine that has not been measured.
InitialEstimates built_in_estimates();

} // namespace near::segment
