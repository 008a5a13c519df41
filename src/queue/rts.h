// The state of an announced message: taken by its receiver or withdrawn by its sender, never both. See
// doc/queue/rts.md.
//
//   word = generation << 2 | state
//
//   (g, free) --announce--> (g, announced) --accept, the receiver--> (g, matched) ----retire---> (g + 1, free)
//                                 |                                                  ^
//                                 +--cancel, the sender----------> (g, cancelled) ---+
//
// All steps but accept are the sender's, who owns the word. A rts names its generation, so an old one
// finds another word and is harmless for 2^32 uses of one descriptor.
//
// All orders are relaxed: compare-and-swap decides who of the two wins, and that is all that passes through
// the word. The announced bytes reach the receiver with the message that carries the RTS; the sender gets
// its buffer back by a message of the receiver, or, when it withdrew the RTS, never lent it.
#pragma once

#include "base/atomic.h"
#include "queue/cooperative_copy.h"

#include <cstdint>

namespace near::queue {

enum class RtsState : std::uint64_t { free = 0, announced = 1, matched = 2, cancelled = 3 };

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

  /// Receiver: takes the RTS; false when it was withdrawn. At most once for an RTS.
  bool accept(std::uint32_t generation) {
    std::uint64_t announced = make(generation, RtsState::announced);
    return word_.cas_relaxed(announced, make(generation, RtsState::matched));
  }
  /// Receiver: false when accept() cannot succeed any more. True promises nothing.
  bool is_live(std::uint32_t generation) const {
    return word_.load_relaxed() == make(generation, RtsState::announced);
  }

  /// For a message that both sides copy; from announce() to retire().
  CooperativeCopy<Atomics>& cooperation() { return cooperation_; }

private:
  static constexpr std::uint64_t make(std::uint32_t generation, RtsState state) {
    return static_cast<std::uint64_t>(generation) << 2 | static_cast<std::uint64_t>(state);
  }
  static constexpr std::uint32_t generation_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 2);
  }

  typename Atomics::template Atomic<std::uint64_t> word_{0};
  CooperativeCopy<Atomics> cooperation_;
};

} // namespace near::queue
