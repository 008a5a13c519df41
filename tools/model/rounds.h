// The rounds of a ring algorithm, for all ranks at once.
#pragma once

#include <cstddef>
#include <vector>

namespace near::model {

/// One rank's exchange in each round of a ring: times in nanoseconds. Ranks are in the order of the ring.
struct Hop {
  double announce = 0; ///< from when the rank is ready until its data may leave
  bool waits =
      false; ///< but the data also waits until the receiver is ready, and then for `answer` (a rendezvous)
  double answer = 0;
  double leaves = 0;  ///< from when the data leaves until the sender has none of it left
  double arrives = 0; ///< from when the data leaves until the receiver has all of it
  double after = 0;   ///< what the rank does when both its messages are done
  bool operator==(const Hop&) const = default;
};

/// Lets ranks that are ready at `ready` go through so many rounds, and replaces these times by those at which they end. If all ranks are
/// alike, or if everything repeats after `block` ranks, only so many are computed: the others do the same at the same times.
void go_round(const std::vector<Hop>& hops, std::vector<double>& ready, int rounds, std::size_t block);

} // namespace near::model
