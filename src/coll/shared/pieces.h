// Where a rank's part of an area holds data that is too long for an entry, but needs no slice.
//
// Two rings of bytes, which successive data uses alternately: a processor that reads a piece fetches the beginning of what
// follows it in memory, which the writer may be filling for the next number. Shorter data takes less room, so more of it
// may be under way. A piece is free when the data in it and all earlier data is over: every rank has read it.
#pragma once

#include "base/atomic.h"
#include "queue/sequence_flag.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace near::coll {

class Pieces {
public:
  static constexpr std::size_t unit = 2 * base::cache_line, ring_bytes = 16u << 10, bytes = 2 * ring_bytes;

  struct Place {
    std::size_t offset;   ///< within the part's `bytes` bytes
    queue::Number before; ///< what was put there before; 0: nothing
  };
  /// Where the next data goes. Precondition: `needed` is positive, and at most ring_bytes.
  Place next(std::size_t needed) const {
    const Ring& ring = rings_[turn_];
    const std::size_t units = units_of(needed), first = ring.first(units);
    const auto* const begin = ring.numbers.data() + first;
    return {(turn_ * units_in_ring + first) * unit, *std::max_element(begin, begin + units)};
  }
  /// Uses the place that next(needed) returns for the data of `number`, which is greater than all before.
  void take(std::size_t needed, queue::Number number) {
    Ring& ring = rings_[turn_];
    const std::size_t units = units_of(needed), first = ring.first(units);
    for (std::size_t i = first; i < first + units; ++i) ring.numbers[i] = number;
    ring.next = first + units;
    turn_ = 1 - turn_;
  }

private:
  static constexpr std::size_t units_in_ring = ring_bytes / unit;
  static std::size_t units_of(std::size_t needed) { return (needed + unit - 1) / unit; }

  struct Ring {
    std::size_t next = 0; ///< unit
    std::array<queue::Number, units_in_ring> numbers{};
    /// The first of so many neighbouring units: what remains at the end may be too little.
    std::size_t first(std::size_t units) const { return next + units <= units_in_ring ? next : 0; }
  };
  std::array<Ring, 2> rings_;
  std::size_t turn_ = 0;
};

} // namespace near::coll
