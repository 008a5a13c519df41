// Bytes that are on their way between two processes at once, in one message or in many: so many that they sweep the caches?
//
// doc/adr/0014 has the figures.
#pragma once

#include <algorithm>
#include <cstdint>

namespace near::shm {

class Backlog {
public:
  void add(std::uint64_t bytes) {
    if (now_ == 0) most_ = 0;
    now_ += bytes;
    most_ = std::max(most_, now_);
  }
  /// These bytes, which were added, have arrived or will never be sent.
  void remove(std::uint64_t bytes) { now_ -= bytes; }
  /// The most that there were at once since there were none. The last messages of a window are part of the window.
  std::uint64_t most() const { return most_; }

private:
  std::uint64_t now_ = 0, most_ = 0;
};

} // namespace near::shm
