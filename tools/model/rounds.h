// The rounds of a ring algorithm, for all ranks at once.
#pragma once

#include <cstddef>
#include <vector>

namespace near::model {

/// One rank's exchange in each round of a ring. Times are in nanoseconds. Ranks are in ring order.
struct Hop {
  double announce = 0; ///< from when the rank is ready until its data may be sent
  bool waits =
      false; ///< but the data also wait until the receiver is ready, and then for `answer` (a rendezvous)
  double answer = 0;
  double leaves = 0;  ///< from the start of the send until the sender has no data left
  double arrives = 0; ///< from the start of the send until the receiver has all the data
  double after = 0;   ///< what the rank does after both its messages
  bool operator==(const Hop&) const = default;
};

/// Lets ranks that are ready at the times `ready` go through this many rounds, and replaces
/// these times by those at which they end. If all ranks are alike, or if everything repeats
/// after `block` ranks, only that many are computed: the others do the same at the same times.
void go_round(const std::vector<Hop>& hops, std::vector<double>& ready, int rounds, std::size_t block);

} // namespace near::model
