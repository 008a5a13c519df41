// Distinguishes a program that waits by one-sided reads from one that works with what it reads.
//
// A program that waits reads the same locations again and again, in the same order, and finds the same values. One that works may
// reread some locations, such as the head of a table, but reads others in between.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace near::rma {

class RepeatedReads {
public:
  /// The longest round of reads that is recognised.
  static constexpr unsigned longest = 32;

  /// Notes a read: its location and its value, combined into one number. Returns true if the last reads, including this one, form a
  /// complete round that repeats the one before.
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
  std::array<std::uint32_t, longest> alike_{};        ///< [i]: reads in a row that equal the one i + 1 before
  unsigned first_ = room;
};

} // namespace near::rma
