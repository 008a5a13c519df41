// Which stores fill packets: cached ones or non-temporal ones. The sender alone decides, for each receiver, by
// how long its own copies take.
//
// If the receiver shares the last-level cache, cached stores are about as fast as non-temporal ones, and the
// receiver then reads from that cache. If it does not, each line must first be fetched from the receiver's
// cache, which slows cached stores down several times; non-temporal stores are not affected (doc/adr/0008).
#pragma once

#include "copy/copy.h"
#include "segment/statistics.h"

#include <array>
#include <cstdint>

namespace near::shm {

class StorePolicy {
public:
  /// Shorter copies cannot be timed reliably and always use cached stores.
  static constexpr std::uint64_t worthwhile = 1024;

  /// Copies into a packet for this receiver; bytes >= worthwhile.
  void copy(void* to, const void* from, std::uint64_t bytes);

  /// Takes the machine's profile as initial estimates: nanoseconds a MiB, cached and streaming.
  void begin_with(const std::array<std::uint32_t, 2>& costs);
  /// Publishes the statistics for tools.
  void show_in(segment::PairStatistics* shown) { shown_ = shown; }

  bool streaming() const { return streaming_; }
  /// Nanoseconds a KiB; 0: unknown.
  float cost(bool streaming) const { return cost_[streaming]; }

private:
  /// Streaming makes the receiver read from memory, so it must be clearly cheaper for the sender.
  static constexpr float clearly = 3.0f;
  /// Copies between two trials of the other kind: at least, at most.
  static constexpr std::uint32_t shortest = 8, longest = 256;

  bool better_streaming() const { return cost_[0] > clearly * cost_[1]; }
  void show() const;
  void timed(void* to, const void* from, std::uint64_t bytes, bool streaming);

  segment::PairStatistics* shown_ = nullptr;
  float cost_[2] = {0, 0};
  bool streaming_ = true; ///< never very slow, so it comes first
  std::uint32_t interval_ = shortest, next_ = 0, turn_ = 0;
};

} // namespace near::shm
