// Which stores fill packets: cached, or going round the cache. Decided by the sender alone, per
// receiver, from how long its own copies take.
//
// Where the receiver shares the last-level cache, cached stores are about as fast as streaming ones, and the
// receiver then reads from that cache. Where it does not, each line must first be taken from the receiver's
// cache, which slows cached stores down several times, while streaming ones do not care (doc/adr/0008).
#pragma once

#include "copy/copy.h"
#include "segment/statistics.h"

#include <array>
#include <cstdint>

namespace near::transport {

class StorePolicy {
public:
  /// Copies less than this leave no clear figure and are always cached.
  static constexpr std::uint64_t worthwhile = 1024;

  /// Copies to a packet of ours for this receiver; bytes >= worthwhile.
  void copy(void* to, const void* from, std::uint64_t bytes);

  /// What the machine's profile says, nanoseconds a MiB cached and streaming; corrected by our own copies.
  void begin_with(const std::array<std::uint32_t, 2>& costs);
  /// Where tools read what is known.
  void show_in(segment::PairStatistics* shown) { shown_ = shown; }

  bool streaming() const { return streaming_; }
  /// Nanoseconds a KiB; 0: not known yet.
  float cost(bool streaming) const { return cost_[streaming]; }

private:
  /// Streaming costs the receiver a read from memory, so it must be clearly cheaper here.
  static constexpr float clearly = 3.0f;
  /// How many copies between two looks at the other kind: from, to.
  static constexpr std::uint32_t shortest = 8, longest = 256;

  bool better_streaming() const { return cost_[0] > clearly * cost_[1]; }
  void show() const;
  void timed(void* to, const void* from, std::uint64_t bytes, bool streaming);

  segment::PairStatistics* shown_ = nullptr;
  float cost_[2] = {0, 0};
  bool streaming_ = true; ///< what is never very bad, until more is known
  std::uint32_t interval_ = shortest, next_ = 0, turn_ = 0;
};

} // namespace near::transport
