// Chooses the stores that fill packets, cached or non-temporal ones. The sender decides alone, for each
// receiver, from the time that its own copies take.
//
// If the receiver shares the sender's last-level cache, cached stores are about as fast as non-temporal ones,
// and the receiver then reads from that cache. If it does not, each line must first be fetched from the
// receiver's cache, which slows cached stores down several times; non-temporal stores are not affected
// (doc/adr/0008).
#pragma once

#include "copy/copy.h"
#include "segment/statistics.h"

#include <array>
#include <cstdint>

namespace near::shm {

class StorePolicy {
public:
  /// Bytes. Shorter copies cannot be timed reliably and always use cached stores.
  static constexpr std::uint64_t worthwhile = 1024;

  /// Copies into a packet for this receiver. `bytes` must be at least `worthwhile`.
  void copy(void* to, const void* from, std::uint64_t bytes);

  /// Takes the initial estimates from the machine's profile: nanoseconds per MiB, cached and streaming.
  void begin_with(const std::array<std::uint32_t, 2>& costs);
  /// Publishes the statistics in `shown`, where tools read them.
  void show_in(segment::PairStatistics* shown) { shown_ = shown; }

  bool streaming() const { return streaming_; }
  /// The cost of a copy with these stores in nanoseconds per KiB; 0: unknown.
  float cost(bool streaming) const { return cost_[streaming]; }

private:
  /// After streaming stores the receiver must read from memory, so they must be much cheaper for the sender.
  static constexpr float clearly = 3.0f;
  /// The smallest and the largest number of copies between two trials of the other kind.
  static constexpr std::uint32_t shortest = 8, longest = 256;

  bool better_streaming() const { return cost_[0] > clearly * cost_[1]; }
  void show() const;
  void timed(void* to, const void* from, std::uint64_t bytes, bool streaming);

  segment::PairStatistics* shown_ = nullptr;
  float cost_[2] = {0, 0};
  bool streaming_ = true; ///< tried first, because it is never very slow
  std::uint32_t interval_ = shortest, next_ = 0, turn_ = 0;
};

} // namespace near::shm
