// How many packets wait for messages, depending on how many messages arrive at once.
#pragma once

#include <algorithm>
#include <cstdint>

namespace near::ofi {

/// Starts with the least number, doubles when one poll of the network finds as many messages as there were packets waiting, and
/// halves when `looks_until_fewer` polls in a row have found no more than `few`. Polls that find nothing do not count.
class PostedCount {
public:
  static constexpr std::uint32_t most = 64, few = 2, looks_until_fewer = 64;

  /// `least`: how many must wait at least, which grows with the number of peers.
  std::uint32_t wanted(std::uint32_t least) const { return std::max(wanted_, least); }

  /// Call after a poll that has found `arrivals` messages; a poll finds at most `most_found`.
  void looked(std::uint32_t arrivals, std::uint32_t most_found, std::uint32_t least) {
    if (arrivals == 0) return;
    const std::uint32_t waiting = wanted(least);
    quiet_looks_ = arrivals <= few ? quiet_looks_ + 1 : 0;
    if (arrivals >= std::min(waiting, most_found)) {
      wanted_ = std::min(2 * waiting, most);
      quiet_looks_ = 0;
    } else if (quiet_looks_ >= looks_until_fewer) {
      wanted_ = waiting / 2;
      quiet_looks_ = 0;
    }
  }

private:
  std::uint32_t wanted_ = 0; ///< 0: as few as possible
  std::uint32_t quiet_looks_ = 0;
};

} // namespace near::ofi
