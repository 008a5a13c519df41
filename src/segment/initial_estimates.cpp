#include "segment/initial_estimates.h"

#include <initializer_list>

namespace near::segment {

namespace {

/// The assumed cost of a protocol: `once` nanoseconds plus `per_mib` for each MiB.
struct Assumed {
  Protocol protocol;
  std::uint32_t once, per_mib;
};

// Measurements of doc/adr/0006, 0008 and 0009, for processors that share a last-level cache and for others.
// Direct: copies from a source that its owner has just written. Pipelined and CMA: whole messages of 64 KiB
// and 1 MiB. There are no estimates for stores: senders begin with streaming ones, which are never very bad
// (0008).
constexpr Assumed near_by[] = {
    {Protocol::direct, 300, 23'000}, {Protocol::pipelined, 600, 33'000}, {Protocol::cma, 1'500, 80'000}};
constexpr Assumed farther[] = {
    {Protocol::direct, 600, 47'000}, {Protocol::pipelined, 1'500, 55'000}, {Protocol::cma, 2'000, 80'000}};

} // namespace

const char* distance_name(Distance distance) {
  switch (distance) {
  case Distance::core: return "core";
  case Distance::l3: return "l3";
  case Distance::numa: return "numa";
  case Distance::package: return "package";
  case Distance::machine: return "machine";
  case Distance::count: break;
  }
  return "?";
}

const char* basis_name(Basis basis) {
  switch (basis) {
  case Basis::none: return "none";
  case Basis::built_in: return "built in";
  case Basis::profile: return "profile";
  case Basis::other_size: return "measured at another size";
  case Basis::measured: return "measured";
  case Basis::named: return "NEAR_COPY";
  }
  return "?";
}

Distance distance_between(const Location& one, const Location& other) {
  auto shared = [](std::uint16_t a, std::uint16_t b) { return a == b && a != Location::several; };
  if (shared(one.core, other.core)) return Distance::core;
  if (shared(one.l3, other.l3)) return Distance::l3;
  if (shared(one.numa, other.numa)) return Distance::numa;
  if (shared(one.package, other.package)) return Distance::package;
  return Distance::machine;
}

InitialEstimates built_in_estimates() {
  InitialEstimates made{};
  made.basis = Basis::built_in;
  for (std::size_t distance = 0; distance < distances; ++distance)
    for (const Assumed& protocol : distance <= static_cast<std::size_t>(Distance::l3) ? near_by : farther)
      for (std::size_t size = 0; size < size_classes; ++size) {
        std::uint64_t bytes = std::uint64_t{4096} << size;
        made.pair[distance].cost[size][static_cast<std::size_t>(protocol.protocol)] =
            protocol.per_mib + static_cast<std::uint32_t>((std::uint64_t{protocol.once} << 20) / bytes);
      }
  return made;
}

} // namespace near::segment
