// cooperative copy for one message: its receiver fetches chunks from the front while its sender brings chunks from
// the back. See doc/queue/cooperative_copy.md.
//
//   chunks   | 0 | 1 | 2 | 3 | 4 | 5 | 6 |       claims = chunks taken from the front | from the back << 32
//              ->  receiver       sender <-
//
// One addition claims a chunk: if front and back together were fewer than there are, it is the claimer's
// alone; if not, nothing is left, and the sum never becomes smaller. So each chunk has one claimer, and the
// receiver knows how many the sender has: all that are not its own.
//
// The additions are relaxed: they say who copies what, and nothing is read because of them but what the RTS
// and the request to cooperate have published already.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

template <class Atomics = base::Hardware>
class CooperativeCopy {
public:
  static constexpr std::uint32_t none = ~0u;

  /// Sender, before the RTS is published.
  void begin() {
    claims_.store_relaxed(0);
    brought_.store_relaxed(0);
  }

  /// Receiver: the next chunk of `chunks` from the front; none: all are claimed.
  std::uint32_t claim_front(std::uint32_t chunks) {
    std::uint64_t before = claims_.add_relaxed(1);
    return left(before, chunks) ? front(before) : none;
  }
  /// Sender: the next one from the back.
  std::uint32_t claim_back(std::uint32_t chunks) {
    std::uint64_t before = claims_.add_relaxed(one_from_back);
    return left(before, chunks) ? chunks - 1 - back(before) : none;
  }

  /// Sender: one more of its chunks is in the receiver's memory.
  void brought_one() {
    // SYNC: brought. The chunk is there before the receiver counts it.
    std::uint64_t brought = brought_.load_relaxed();
    brought_.store_release(brought + 1);
  }
  /// Sender: this chunk of its could not be brought, and it claims no more.
  void gave_up(std::uint32_t chunk) {
    std::uint64_t brought = brought_.load_relaxed();
    // SYNC: brought. The chunks before it are there.
    brought_.store_release(brought | (std::uint64_t{chunk} + 1) << 32);
  }

  /// Receiver, when claim_front() gives none: whether the sender is done with its `theirs` chunks. `failed`
  /// is the one that the receiver must fetch itself, or none.
  bool settled(std::uint32_t theirs, std::uint32_t& failed) const {
    // SYNC: brought. The chunks that are counted may be read, and no store to them follows.
    std::uint64_t brought = brought_.load_acquire();
    auto given_up = static_cast<std::uint32_t>(brought >> 32);
    failed = given_up - 1;
    return static_cast<std::uint32_t>(brought) + (given_up != 0 ? 1 : 0) >= theirs;
  }

private:
  static constexpr std::uint64_t one_from_back = std::uint64_t{1} << 32;
  static std::uint32_t front(std::uint64_t claims) { return static_cast<std::uint32_t>(claims); }
  static std::uint32_t back(std::uint64_t claims) { return static_cast<std::uint32_t>(claims >> 32); }
  static bool left(std::uint64_t claims, std::uint32_t chunks) {
    return std::uint64_t{front(claims)} + back(claims) < chunks;
  }

  typename Atomics::template Atomic<std::uint64_t> claims_{0};
  /// Chunks that the sender has brought; above them the number of the one that it gave up, plus one.
  typename Atomics::template Atomic<std::uint64_t> brought_{0};
};

} // namespace near::queue
