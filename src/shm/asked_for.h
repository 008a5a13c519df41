// The bytes that this process has asked one peer for, and the stores with which they go into its buffers.
//
// A long message sweeps the last-level cache. Stores past the cache then save the reading of lines that are overwritten, but the
// program has to read from memory what they have written. Which is faster depends on the cache, on what others do with it, and on
// the program, so it is measured. A turn lasts from when nothing is on its way until the same is true again and the next bytes
// are asked for, so the pause in which the program uses what has come is part of it. doc/adr/0051 has the figures.
#pragma once

#include "copy/footprint.h"
#include "shm/store_turns.h"

namespace near::shm {

class AskedFor {
public:
  /// `cache`: bytes of the last-level cache; 0: those of this machine's.
  explicit AskedFor(std::uint64_t cache = 0) : cache_(cache) {}

  /// `now_ns`: os::monotonic_ns(). Returns what remove() wants to know.
  std::uint64_t add(const void* buffer, std::uint64_t bytes, std::uint64_t now_ns) {
    if (on_their_way_ == 0 || arrived_ >= longest_turn) begin_turn(now_ns);
    if (on_their_way_++ == 0) footprint_.clear();
    const std::uint64_t added = footprint_.add(buffer, bytes);
    most_ = std::max(most_, footprint_.most());
    return added;
  }
  /// A message has arrived, for which add() has returned `added`.
  void remove(std::uint64_t bytes, std::uint64_t added) {
    --on_their_way_;
    footprint_.remove(added);
    arrived_ += bytes;
  }

  /// The most memory for what was on its way together, since nothing was; 0 if nothing is.
  std::uint64_t most() const { return on_their_way_ == 0 ? 0 : footprint_.most(); }

  /// For the `bytes` that are copied next.
  copy::Store stores(std::uint64_t bytes) {
    const Class its = class_of(footprint_.most());
    copied_[its] += bytes;
    if (its == fits || its == too_long) return its == fits ? copy::Store::cached : copy::Store::streaming;
    return turns_of(its).next();
  }

private:
  /// By the memory that is on its way: stores are cached, measured, measured but past the cache until something else was measured, or always
  /// past it. Two processes have buffers to send and to receive.
  enum Class : std::uint8_t { fits, maybe_fits, hardly_fits, too_long, classes };
  static constexpr std::uint64_t least = 1 << 20;
  /// A stream in which something is always on its way is cut into turns of so many bytes that have arrived.
  static constexpr std::uint64_t longest_turn = 64 << 20;
  /// The first turns meet buffers and packets that nobody has used before.
  static constexpr std::uint32_t first_turns = 4;

  Class class_of(std::uint64_t most) const {
    if (most < least) return fits;
    const std::uint64_t cache = cache_ != 0 ? cache_ : copy::last_level_cache();
    return most >= cache ? too_long : most >= cache / 2 ? hardly_fits : most >= cache / 8 ? maybe_fits : fits;
  }
  StoreTurns& turns_of(Class its) { return its == maybe_fits ? maybe_ : hardly_; }
  void begin_turn(std::uint64_t now_ns);

  std::uint64_t cache_;
  std::uint32_t on_their_way_ = 0; ///< messages
  copy::Footprint footprint_;
  StoreTurns maybe_{copy::Store::cached, 16}, hardly_{copy::Store::streaming, 32};
  // Of the present turn:
  std::uint64_t began_ns_ = 0, arrived_ = 0, most_ = 0;
  std::array<std::uint64_t, classes> copied_{}; ///< bytes, by the class at that time
  std::array<std::uint32_t, classes> before_{}; ///< turns that could be measured, up to `first_turns`
};

} // namespace near::shm
