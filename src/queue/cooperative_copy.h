// Cooperative copy of one message: the receiver copies chunks from the front while the sender copies chunks
// from the back. See doc/queue/cooperative_copy.md.
//
//   chunks   | 0 | 1 | 2 | 3 | 4 | 5 | 6 |       claims = chunks taken from the front | from the back << 32
//              ->  receiver       sender <-
//
// One addition claims a chunk. If there had been fewer claims from both ends than there are chunks, the claimer
// has the chunk to itself; otherwise no chunk is left, and since the sum never decreases, none will be. So
// each chunk has one claimer, and the receiver knows the sender's number of chunks: all that are not its own.
//
// The additions are relaxed: they only decide which process copies which chunk. All that the claimers read because of
// them was published earlier, by the RTS and by the request to cooperate.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

template <class Atomics = base::Hardware>
class CooperativeCopy {
public:
  static constexpr std::uint32_t none = ~0u;

  /// Sender: prepares the copy, before the RTS is published.
  void begin() {
    claims_.store_relaxed(0);
    brought_.store_relaxed(0);
  }

  /// Receiver: claims the next chunk of `chunks` from the front; `none` if all are claimed.
  std::uint32_t claim_front(std::uint32_t chunks) {
    std::uint64_t before = claims_.add_relaxed(1);
    return left(before, chunks) ? front(before) : none;
  }
  /// Sender: claims the next chunk from the back; `none` if all are claimed.
  std::uint32_t claim_back(std::uint32_t chunks) {
    std::uint64_t before = claims_.add_relaxed(one_from_back);
    return left(before, chunks) ? chunks - 1 - back(before) : none;
  }

  /// Sender: counts one more of its chunks as copied into the receiver's memory.
  void brought_one() {
    // SYNC: brought. The chunk is there before the receiver counts it.
    std::uint64_t brought = brought_.load_relaxed();
    brought_.store_release(brought + 1);
  }
  /// Sender: reports that it could not copy this chunk; it claims no more.
  void gave_up(std::uint32_t chunk) {
    std::uint64_t brought = brought_.load_relaxed();
    // SYNC: brought. The chunks before it are there.
    brought_.store_release(brought | (std::uint64_t{chunk} + 1) << 32);
  }

  /// Receiver, after claim_front() has returned `none`: returns whether the sender is done with its `theirs` chunks.
  /// `failed` is the chunk that the receiver must copy instead, or `none`.
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
  /// Chunks that the sender has copied; in the upper half, the number of the chunk that it gave up, plus one.
  typename Atomics::template Atomic<std::uint64_t> brought_{0};
};

} // namespace near::queue
