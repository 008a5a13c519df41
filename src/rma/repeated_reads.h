// Tells a program that waits by one-sided reads from one that works with what it reads.
//
// One that waits reads the same locations again and again, in the same order, and finds the same each time. One that works may read
// some of them again, such as the head of a table, but others in between.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace near::rma {

class RepeatedReads {
public:
  /// The longest round of reads that is recognised.
  static constexpr unsigned longest = 32;

  /// Notes a read: its location and what it found, as one number. Returns true if the last reads, this one included, are a whole round
  /// that repeats the one before.
  bool repeats(std::uintptr_t read) {
    // Half of the bits, so that vector instructions compare four at a time.
    const auto now = static_cast<std::uint32_t>(read ^ read >> 32);
    std::uint32_t found = 0;
    for (unsigned i = 0; i < longest; ++i) {
      alike_[i] = reads_[first_ + i] == now ? alike_[i] + 1 : 0;
      found |= alike_[i] > i ? 1u : 0u;
    }
    if (first_ == 0) {
      std::copy_n(reads_.begin(), longest, reads_.begin() + room);
      first_ = room;
    }
    reads_[--first_] = now;
    return found != 0;
  }

private:
  static constexpr unsigned room = 3 * longest;
  std::array<std::uint32_t, room + longest> reads_{}; ///< from `first_` on, the newest first
  std::array<std::uint32_t, longest> alike_{};        ///< [i]: how many reads are as those i + 1 before them
  unsigned first_ = room;
};

} // namespace near::rma
