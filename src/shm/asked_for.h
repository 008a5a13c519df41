// The bytes that this process has asked one peer for, and the stores with which they go into its buffers.
//
// A long message sweeps the last-level cache. Stores past the cache then save the reading of lines that are overwritten, but the
// program has to read from memory what they have written. Which is faster depends on the cache, on what others do with it, and on
// the program, so it is measured. A turn lasts from when nothing is on its way until the same is true again and the next bytes
// are asked for, so the pause in which the program uses what has come is part of it. doc/adr/0051 has the figures.
#pragma once

#include "shm/backlog.h"
#include "shm/store_turns.h"

namespace near::shm {

class AskedFor {
public:
  /// `cache`: bytes of the last-level cache.
  explicit AskedFor(std::uint64_t cache = last_level_cache()) : cache_(cache) {}

  void add(std::uint64_t bytes) {
    if (asked_.most() == 0 || bytes_ >= longest_turn) begin_turn();
    asked_.add(bytes);
    bytes_ += bytes;
    most_ = std::max(most_, asked_.most());
  }
  void remove(std::uint64_t bytes) { asked_.remove(bytes); }
  std::uint64_t most() const { return asked_.most(); }

  /// For what arrives now.
  copy::Store stores() const {
    const std::uint64_t most = asked_.most();
    if (most < std::max(least, cache_ / maybe_past)) return copy::Store::cached;
    return most < cache_ ? turns_[class_of(most)].next() : copy::Store::streaming;
  }

  /// os::largest_cache(), or what is usual if it is unknown.
  static std::uint64_t last_level_cache();

private:
  /// From this part of the cache on the stores are measured, and from that one on they go past it until something else was measured;
  /// always if what is on its way alone would fill it. Two processes have buffers to send and to receive.
  static constexpr std::uint64_t maybe_past = 8, probably_past = 2;
  static constexpr std::uint64_t least = 1 << 20;
  /// A stream in which something is always on its way is cut into turns.
  static constexpr std::uint64_t longest_turn = 64 << 20;
  /// The first turns meet buffers and packets that nobody has used before.
  static constexpr std::uint32_t first_turns = 4;

  std::size_t class_of(std::uint64_t most) const { return most >= cache_ / probably_past ? 1 : 0; }
  void begin_turn();

  std::uint64_t cache_;
  Backlog asked_;
  std::array<StoreTurns, 2> turns_{StoreTurns(copy::Store::cached, 16),
                                   StoreTurns(copy::Store::streaming, 32)};
  std::uint64_t began_ns_ = 0, bytes_ = 0, most_ = 0; ///< of the present turn
  std::array<std::uint32_t, 2> before_{};             ///< turns that could be measured, up to `first_turns`
};

} // namespace near::shm
