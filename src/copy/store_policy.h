// Chooses between cached and non-temporal stores, for copies that another process reads, from the time that they take the
// process that copies.
//
// If the readers share this process's last-level cache, cached stores are as fast as non-temporal ones or faster, and the
// readers read from that cache. If they do not, each line must first be fetched from a reader's cache, which slows cached
// stores down several times; non-temporal stores are not affected (doc/adr/0008).
#pragma once

#include "copy/copy.h"

#include <array>
#include <cstdint>

namespace near::copy {

class StorePolicy {
public:
  /// Bytes. Shorter copies cannot be timed reliably.
  static constexpr std::uint64_t worthwhile = 1024;

  /// `first`: the stores that are tried first. Non-temporal ones are taken if cached ones take more than `factor` times as
  /// long: readers have to fetch from memory what they have written.
  StorePolicy(Store first, float factor) : factor_(factor), streaming_(first == Store::streaming) {}

  /// Copies with the stores that are to be used. `bytes` must be at least `worthwhile`. Returns whether that was timed, after
  /// which the costs may differ.
  bool copy(void* to, const void* from, std::uint64_t bytes) {
    const Use use = begin();
    copy::copy(to, from, bytes, use.stores);
    return end(use, bytes);
  }

  /// One or several copies that are timed together.
  struct Use {
    Store stores;
    std::uint64_t since_ns; ///< 0: they are not timed
  };
  Use begin() {
    if (next_-- != 0) [[likely]]
      return {streaming_ ? Store::streaming : Store::cached, 0};
    return begin_timed();
  }
  /// After these copies, of `bytes` bytes altogether. Returns what copy() does. Not necessary if nothing was copied with these
  /// stores.
  bool end(const Use& use, std::uint64_t bytes) {
    if (use.since_ns == 0) [[likely]]
      return false;
    end_timed(use, bytes);
    return true;
  }

  /// Takes the initial estimates from the machine's profile: nanoseconds per MiB, cached and streaming.
  void begin_with(const std::array<std::uint32_t, 2>& costs);

  bool streaming() const { return streaming_; }
  /// The cost of a copy with these stores in nanoseconds per KiB; 0: unknown.
  float cost(bool streaming) const { return cost_[streaming]; }

private:
  /// The smallest and the largest number of copies between two trials of the other kind.
  static constexpr std::uint32_t shortest = 8, longest = 256;

  bool better_streaming() const { return cost_[0] > factor_ * cost_[1]; }
  Use begin_timed();
  void end_timed(const Use& use, std::uint64_t bytes);
  void choose();

  float factor_;
  float cost_[2] = {0, 0}; ///< the lower one of the last two
  float last_[2] = {0, 0};
  bool streaming_;
  std::uint32_t interval_ = shortest, next_ = 0, turn_ = 0;
};

} // namespace near::copy
