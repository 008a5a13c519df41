// Chooses between cached and non-temporal stores for copies that another process reads, by the time that each kind takes
// the process that copies.
//
// If the readers share this process's last-level cache, cached stores are at least as fast as non-temporal ones, and the
// readers read from that cache. Otherwise each line must first be fetched from a reader's cache, which slows cached
// stores down several times; non-temporal stores are not affected (doc/adr/0008).
#pragma once

#include "copy/copy.h"

#include <array>
#include <cstdint>

namespace near::copy {

class StorePolicy {
public:
  /// In bytes. Shorter copies cannot be timed reliably.
  static constexpr std::uint64_t worthwhile = 1024;

  /// When one kind of stores replaces the other.
  struct Bounds {
    /// Non-temporal stores replace cached ones that take more than this many times as long.
    float leave;
    /// Cached stores replace non-temporal ones if they take at most this many times as long. Greater than `leave` if the cost
    /// depends on the preceding stores: cached stores to lines that non-temporal ones have sent to memory take up to five
    /// times as long as these, but no longer than these once the lines are in a cache.
    float enter;
    /// After such a change the first `settling` copies are not timed, since they still show the cost from before the change.
    std::uint32_t settling;
  };
  /// `first`: the stores to try first. `factor`: both bounds.
  StorePolicy(Store first, float factor) : StorePolicy(first, {factor, factor, shortest / 2}) {}
  StorePolicy(Store first, const Bounds& bounds)
      : leave_(bounds.leave), enter_(bounds.enter), settling_(2 * bounds.settling),
        streaming_(first == Store::streaming) {}

  /// Copies with the stores to be used. `bytes` must be at least `worthwhile`. A long copy may count as several. Returns whether
  /// the copy was timed, after which the costs may differ.
  bool copy(void* to, const void* from, std::uint64_t bytes, std::uint32_t copies = 1) {
    const Use use = begin(copies);
    copy::copy(to, from, bytes, use.stores);
    return end(use, bytes);
  }

  /// One or several copies timed together.
  struct Use {
    Store stores;
    std::uint64_t since_ns; ///< 0: not timed
  };
  Use begin(std::uint32_t copies = 1) {
    if (next_ >= copies) [[likely]] {
      next_ -= copies;
      return {present(), 0};
    }
    return begin_timed();
  }
  /// Call after these copies, of `bytes` bytes in total. Returns the same as copy(). Not necessary if nothing was copied with
  /// these stores.
  bool end(const Use& use, std::uint64_t bytes) {
    if (use.since_ns == 0) [[likely]]
      return false;
    end_timed(use, bytes);
    return true;
  }

  /// Takes the initial estimates from the machine's profile: nanoseconds per MiB, cached and streaming.
  void begin_with(const std::array<std::uint32_t, 2>& costs);

  bool streaming() const { return streaming_; }
  /// The stores in use, for copies that are not to be timed.
  Store present() const { return streaming_ ? Store::streaming : Store::cached; }
  /// The cost of a copy with these stores in nanoseconds per KiB; 0: unknown.
  float cost(bool streaming) const { return cost_[streaming]; }

private:
  /// The smallest and the largest number of copies between two trials of the other kind.
  static constexpr std::uint32_t shortest = 8, longest = 256;
  /// Each time that cached stores turn out to be slower after all, twice as many measurements must favour them before the
  /// next attempt, up to this many.
  static constexpr std::uint32_t most_wanted = 16;

  bool better_streaming() const { return cost_[0] > (streaming_ ? enter_ : leave_) * cost_[1]; }
  Use begin_timed();
  void end_timed(const Use& use, std::uint64_t bytes);
  void choose();

  float leave_, enter_;
  std::uint32_t settling_;
  float cost_[2] = {0, 0}; ///< the lower of the last two
  float last_[2] = {0, 0};
  bool streaming_;
  std::uint32_t interval_ = shortest, next_ = 0, turn_ = 0;
  std::uint32_t cheap_ = 0;  ///< measurements in a row that favoured cached stores while others were in use
  std::uint32_t wanted_ = 1; ///< how many are required
};

} // namespace near::copy
