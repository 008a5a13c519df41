// The state of an announced message: taken by its receiver or withdrawn by its sender, never both. See
// doc/queue/rts.md.
//
//   word = generation << 3 | state
//
//   (g, free) --announce--> (g, announced) --accept, the receiver--> (g, matched) ------retire----> (g + 1, free)
//                                 |                                       |                            ^  ^
//                                 |                                       +--leave_fin--> (g, received)+  |
//                                 +--cancel, the sender----------> (g, cancelled) ------------------------+
//
// The receiver takes the steps accept and leave_fin, the sender all others. An RTS names its generation, so
// an outdated one finds another word and is harmless for 2^32 uses of one descriptor.
//
// accept and cancel are relaxed: compare-and-swap decides which of the two wins, and nothing else passes
// through the word. The announced bytes reach the receiver with the message that carries the RTS. The sender
// gets its buffer back by a FIN, or by `received` where the receiver found no slot for a FIN. If it withdrew
// the RTS, it never lent the buffer.
#pragma once

#include "base/atomic.h"
#include "queue/cooperative_copy.h"

#include <cstdint>

namespace near::queue {

enum class RtsState : std::uint64_t { free = 0, announced = 1, matched = 2, cancelled = 3, received = 4 };

template <class Atomics = base::Hardware>
class alignas(base::cache_line) RtsDescriptor {
public:
  /// Sender: announces a message; the generation goes into the RTS.
  std::uint32_t announce() {
    std::uint32_t generation = generation_of(word_.load_relaxed());
    cooperation_.begin();
    word_.store_relaxed(make(generation, RtsState::announced)); // published by the RTS's message
    return generation;
  }
  /// Sender: withdraws it; false when the receiver was faster. Not before announce(), not after retire().
  bool cancel() {
    std::uint32_t generation = generation_of(word_.load_relaxed());
    std::uint64_t announced = make(generation, RtsState::announced);
    return word_.cas_relaxed(announced, make(generation, RtsState::cancelled));
  }
  /// Sender: the receiver is done, or the RTS was withdrawn. The descriptor can be used again.
  void retire() { word_.store_relaxed(make(generation_of(word_.load_relaxed()) + 1, RtsState::free)); }

  /// Sender: whether the descriptor still belongs to the message that was announced with this generation. A FIN that
  /// was left here overtakes earlier messages of the receiver, which may therefore name a message that is over.
  bool serves(std::uint32_t generation) const { return generation_of(word_.load_relaxed()) == generation; }

  /// Receiver: takes the RTS; false when it was withdrawn. At most once for an RTS.
  bool accept(std::uint32_t generation) {
    std::uint64_t announced = make(generation, RtsState::announced);
    return word_.cas_relaxed(announced, make(generation, RtsState::matched));
  }
  /// Receiver: false when accept() cannot succeed any more. True promises nothing.
  bool is_live(std::uint32_t generation) const {
    return word_.load_relaxed() == make(generation, RtsState::announced);
  }

  /// Receiver, after accept(): has finished with the sender's buffer, but found no slot for a FIN. `outcome` is
  /// for the sender.
  void leave_fin(std::uint32_t generation, std::uint64_t outcome) {
    outcome_.store_relaxed(outcome);
    // SYNC: fin-left. The receiver's reads of the buffer, and `outcome`, come before this.
    word_.store_release(make(generation, RtsState::received));
  }
  /// Sender, after announce(): whether leave_fin() was called. If so, sets `outcome`.
  bool is_received(std::uint64_t& outcome) const {
    // SYNC: fin-left. The buffer is the sender's again.
    auto word = word_.load_acquire();
    if ((std::uint64_t{word} & state_mask) != static_cast<std::uint64_t>(RtsState::received)) return false;
    outcome = outcome_.load_relaxed();
    return true;
  }

  /// For a message that both sides copy; from announce() to retire().
  CooperativeCopy<Atomics>& cooperation() { return cooperation_; }

private:
  static constexpr std::uint64_t make(std::uint32_t generation, RtsState state) {
    return static_cast<std::uint64_t>(generation) << state_bits | static_cast<std::uint64_t>(state);
  }
  static constexpr std::uint32_t generation_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> state_bits);
  }
  static constexpr int state_bits = 3;
  static constexpr std::uint64_t state_mask = (1u << state_bits) - 1;

  typename Atomics::template Atomic<std::uint64_t> word_{0};
  typename Atomics::template Atomic<std::uint64_t> outcome_{0}; ///< valid while the state is `received`
  CooperativeCopy<Atomics> cooperation_;
};

} // namespace near::queue
