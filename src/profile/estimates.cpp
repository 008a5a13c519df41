// From the profile to the ranks' initial estimates.
#include "profile/profile.h"

#include <algorithm>
#include <optional>

namespace near::profile {

namespace {

/// Most often, programs send what they have just computed.
constexpr auto usual = static_cast<std::size_t>(Source::rewritten);

/// Streaming only if cached stores take this much longer, as for packets (shm/engine.h). A kind that was not measured is
/// not used.
bool streaming_pays(const std::array<std::uint32_t, 2>& cost) {
  return cost[1] != 0 && (cost[0] == 0 || std::uint64_t{2} * cost[0] > std::uint64_t{3} * cost[1]);
}

/// The entry of `list` nearest to `at` for which good() holds.
template <class List, class Good>
std::optional<std::size_t> nearest(const List& list, std::size_t at, Good&& good) {
  for (std::size_t step = 0; step < list.size(); ++step) {
    if (step <= at && good(list[at - step])) return at - step;
    if (at + step < list.size() && good(list[at + step])) return at + step;
  }
  return std::nullopt;
}

bool any_cost(const std::array<std::uint32_t, kinds>& row) {
  return std::any_of(row.begin(), row.end(), [](std::uint32_t cost) { return cost != 0; });
}

} // namespace

segment::InitialEstimates estimates_of(const Profile& profile) {
  segment::InitialEstimates made{};
  made.basis = segment::Basis::profile;
  profile.measured.copy(made.measured, sizeof made.measured - 1);
  for (std::size_t distance = 0; distance < distances; ++distance) {
    auto measured = [](const auto& classes) {
      return std::any_of(classes.begin(), classes.end(),
                         [](const auto& row) { return any_cost(row[usual]); });
    };
    auto like = nearest(profile.cost, distance, measured);
    if (!like) break;
    auto& pair = made.pair[distance];
    pair.store_cost = profile.store_cost[*like];
    Kind pipelined = streaming_pays(pair.store_cost) ? Kind::pipelined_streaming : Kind::pipelined_cached;
    for (std::size_t size = 0; size < size_classes; ++size)
      for (auto [protocol, kind] : {std::pair{segment::Protocol::direct, Kind::direct},
                                    {segment::Protocol::pipelined, pipelined},
                                    {segment::Protocol::cma, Kind::cma}}) {
        auto at = static_cast<std::size_t>(kind);
        const auto& classes = profile.cost[*like];
        auto row = nearest(classes, size, [at](const auto& of_size) { return of_size[usual][at] != 0; });
        if (row) pair.cost[size][static_cast<std::size_t>(protocol)] = classes[*row][usual][at];
      }
  }
  return made;
}

segment::Location location_of(const topo::Machine& machine, const topo::CpuSet& cpus) {
  segment::Location location;
  bool first = true;
  for (const auto& core : machine.cores) {
    if ((core.cpus & cpus).empty()) continue;
    auto take = [first](std::uint16_t& part, unsigned number) {
      auto here = static_cast<std::uint16_t>(std::min<unsigned>(number, segment::Location::several));
      part = first || part == here ? here : segment::Location::several;
    };
    take(location.core, core.index);
    take(location.l2, core.l2);
    take(location.l3, core.l3);
    take(location.numa, core.numa);
    take(location.package, core.package);
    first = false;
  }
  return location;
}

} // namespace near::profile
