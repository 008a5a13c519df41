// How many bytes are on their way between two processes at once, in one message or in many: whether they sweep the caches.
//
// Counted are pipelined messages, from the receiver's CTS to the last byte. doc/adr/0014 has the figures.
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
  /// These bytes, which were added, are not on their way any more.
  void remove(std::uint64_t bytes) { now_ -= bytes; }
  /// The high-water mark since it was last empty, so that the last messages of a window are part of the window; 0 if it is empty.
  std::uint64_t most() const { return now_ == 0 ? 0 : most_; }

private:
  std::uint64_t now_ = 0, most_ = 0;
};

} // namespace near::shm
