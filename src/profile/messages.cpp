#include "profile/messages.h"

#include <algorithm>
#include <cmath>

namespace near::profile {

namespace {

constexpr std::uint64_t usual_bytes = 64u << 10;

/// Nanoseconds for as many consecutive bytes, interpolated between the measured sizes: a straight line of cost per byte over the
/// logarithm of the size. 0: unknown.
double transfer_time(const Profile& profile, Distance distance, Kind kind, std::uint64_t bytes) {
  const auto& classes = profile.cost[static_cast<std::size_t>(distance)];
  auto cost = [&](std::size_t size) {
    return classes[size][static_cast<std::size_t>(Source::reused)][static_cast<std::size_t>(kind)];
  };
  std::size_t below = size_classes, above = size_classes;
  const double position = std::log2(static_cast<double>(bytes) / 4096);
  for (std::size_t size = 0; size < size_classes; ++size) {
    if (cost(size) == 0) continue;
    if (static_cast<double>(size) <= position || below == size_classes) below = size;
    if (above == size_classes || static_cast<double>(above) < position) above = size;
  }
  if (below == size_classes) return 0;
  double per_mib = cost(below);
  if (above > below) {
    const double part = (position - static_cast<double>(below)) / static_cast<double>(above - below);
    per_mib += std::clamp(part, 0.0, 1.0) * (static_cast<double>(cost(above)) - per_mib);
  }
  return per_mib * static_cast<double>(bytes) / (1 << 20);
}

/// The time for this kind; a kind that was not measured is never the faster one.
double time_or_never(const Profile& profile, Distance distance, Kind kind, std::uint64_t bytes) {
  const double time = transfer_time(profile, distance, kind, bytes);
  return time != 0 ? time : HUGE_VAL;
}

/// Nanoseconds for half a round trip of as many consecutive bytes, interpolated between the measured sizes: straight
/// lines on logarithmic axes. 0: unknown.
double short_time(const Profile& profile, Distance distance, std::uint64_t bytes) {
  const auto& times = profile.short_time[static_cast<std::size_t>(distance)];
  std::size_t below = 0;
  while (below + 2 < short_sizes.size() && short_sizes[below + 1] <= bytes) ++below;
  const double low = times[below], high = times[below + 1];
  const double part = std::clamp(std::log(static_cast<double>(bytes) / short_sizes[below]) /
                                     std::log(1.0 * short_sizes[below + 1] / short_sizes[below]),
                                 0.0, 1.0);
  if (low != 0 && part == 0) return low / 1000;
  if (high != 0 && part == 1) return high / 1000;
  if (low == 0 || high == 0) return 0;
  return low * std::pow(high / low, part) / 1000;
}

MessageTerms predict_whole(const Profile& profile, Distance distance, std::span<const Blocks> all,
                           std::uint64_t bytes) {
  MessageTerms terms;
  terms.whole = true;
  terms.transfer = short_time(profile, distance, bytes);
  const Blocks consecutive[] = {{1, bytes, static_cast<double>(bytes), Spacing::equal}};
  for (Direction direction : {Direction::gather, Direction::scatter}) {
    (direction == Direction::gather ? terms.packing : terms.unpacking) =
        predict_copy(profile.blocks, direction, all, Before::hot).total();
    terms.overlap += predict_copy(profile.blocks, direction, consecutive, Before::hot).total();
  }
  return terms;
}

} // namespace

bool knows_messages(const Profile& profile, Distance distance, std::uint64_t bytes) {
  if (bytes <= longest_whole) return short_time(profile, distance, bytes) != 0;
  return transfer_time(profile, distance, Kind::pipelined_cached, usual_bytes) != 0 ||
         transfer_time(profile, distance, Kind::pipelined_streaming, usual_bytes) != 0;
}

MessageTerms predict_message(const Profile& profile, Distance distance, std::span<const Blocks> all,
                             std::uint64_t bytes) {
  if (bytes <= longest_whole) return predict_whole(profile, distance, all, bytes);
  MessageTerms terms;
  const double cached = time_or_never(profile, distance, Kind::pipelined_cached, bytes),
               streaming = time_or_never(profile, distance, Kind::pipelined_streaming, bytes);
  if (streaming < cached) terms.kind = Kind::pipelined_streaming;
  terms.transfer = std::min(cached, streaming);
  const unsigned sharers = distance <= Distance::l3 ? 2 : 1; // sharing a last-level cache
  terms.packing = predict_copy(profile.blocks, Direction::gather, all, Before::hot, sharers).total();
  terms.unpacking = predict_copy(profile.blocks, Direction::scatter, all, Before::hot, sharers).total();
  terms.overlap = terms.transfer + terms.packing + terms.unpacking -
                  std::max({terms.transfer, terms.packing, terms.unpacking});
  return terms;
}

} // namespace near::profile
