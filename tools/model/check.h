// Measures the times that the model predicts.
#pragma once

#include "calibrate/calibrate.h"
#include "datatype/datatype.h"
#include "profile/messages.h"

#include <functional>
#include <string>
#include <vector>

namespace near::model {

using base::Result;
using profile::Before;
using profile::Direction;

/// The time in nanoseconds for packing or unpacking this buffer's data. Fails if there is no memory for them.
Result time_copy(MPI_Count count, datatype::Datatype& type, Direction direction, Before before, double& took);

/// One comparison.
struct Point {
  std::uint64_t bytes = 0;            ///< packed
  std::uint64_t length = 0, step = 0; ///< bytes of a block, and from one block to the next
  profile::Spacing spacing = profile::Spacing::equal;
  Direction direction = Direction::gather;
  Before before = Before::hot;
  double predicted = 0, measured = 0; ///< nanoseconds
  double again = 0;                   ///< measured again, after all others; 0: it was not
  /// By how much the prediction exceeds the measurement, as a fraction of the latter; negative if it is less.
  double error() const { return predicted / measured - 1; }
};
/// Compares over a grid of sizes, lengths, distances, spacings, directions and states of the caches; most of the lengths and
/// distances are not those of the profile. Calls `report` after each comparison.
Result check_grid(const profile::BlockCosts& costs,
                  const std::function<void(std::size_t done, std::size_t total)>& report,
                  std::vector<Point>& points);

/// A message between two processors at this distance.
struct MessagePoint {
  std::uint64_t bytes = 0;            ///< packed
  std::uint64_t length = 0, step = 0; ///< bytes of a block, and from one block to the next
  profile::Spacing spacing = profile::Spacing::equal;
  profile::Distance distance = profile::Distance::machine;
  double predicted = 0, measured = 0, again = 0; ///< as in Point
  double error() const { return predicted / measured - 1; }
};
/// Compares messages over a grid of sizes, lengths, distances and spacings, between the pairs for which the profile has message
/// costs. The costs of blocks must be complete. Messages that cannot be timed are omitted. Fails if none can be.
Result check_messages(const profile::Profile& known, std::span<const calibrate::Pair> pairs,
                      const std::function<void(std::size_t done, std::size_t total)>& report,
                      std::vector<MessagePoint>& points);

} // namespace near::model
