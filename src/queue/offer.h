// The state of an offered message: taken by its receiver or withdrawn by its sender, never both. See
// doc/queue/offer.md.
//
//   word = generation << 2 | state
//
//   (g, free) --announce--> (g, offered) --accept, the receiver--> (g, matched) ----retire---> (g + 1, free)
//                                 |                                                  ^
//                                 +--cancel, the sender----------> (g, cancelled) ---+
//
// All steps but accept are the sender's, who owns the word. A ticket names its generation, so an old one
// finds another word and is harmless for 2^32 offers of one descriptor.
//
// All orders are relaxed: compare-and-swap decides who of the two wins, and that is all that passes through
// the word. The offered bytes reach the receiver with the message that carries the ticket; the sender gets
// its buffer back by a message of the receiver, or, when it withdrew the offer, never lent it.
#pragma once

#include "base/atomic.h"
#include "queue/two_hands.h"

#include <cstdint>

namespace near::queue {

enum class OfferState : std::uint64_t { free = 0, offered = 1, matched = 2, cancelled = 3 };

template <class Atomics = base::Hardware>
class alignas(base::cache_line) OfferDescriptor {
public:
  /// Sender: offers a message; the generation goes into the ticket.
  std::uint32_t announce() {
    std::uint32_t generation = generation_of(word_.load_relaxed());
    hands_.begin();
    word_.store_relaxed(make(generation, OfferState::offered)); // published by the ticket's message
    return generation;
  }
  /// Sender: withdraws it; false when the receiver was faster. Not before announce(), not after retire().
  bool cancel() {
    std::uint32_t generation = generation_of(word_.load_relaxed());
    std::uint64_t offered = make(generation, OfferState::offered);
    return word_.cas_relaxed(offered, make(generation, OfferState::cancelled));
  }
  /// Sender: the receiver is done, or the offer was withdrawn. The descriptor can be used again.
  void retire() { word_.store_relaxed(make(generation_of(word_.load_relaxed()) + 1, OfferState::free)); }

  /// Receiver: takes the offer; false when it was withdrawn. At most once for a ticket.
  bool accept(std::uint32_t generation) {
    std::uint64_t offered = make(generation, OfferState::offered);
    return word_.cas_relaxed(offered, make(generation, OfferState::matched));
  }
  /// Receiver: false when accept() cannot succeed any more. True promises nothing.
  bool is_live(std::uint32_t generation) const {
    return word_.load_relaxed() == make(generation, OfferState::offered);
  }

  /// For a message that both sides copy; from announce() to retire().
  TwoHands<Atomics>& hands() { return hands_; }

private:
  static constexpr std::uint64_t make(std::uint32_t generation, OfferState state) {
    return static_cast<std::uint64_t>(generation) << 2 | static_cast<std::uint64_t>(state);
  }
  static constexpr std::uint32_t generation_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 2);
  }

  typename Atomics::template Atomic<std::uint64_t> word_{0};
  TwoHands<Atomics> hands_;
};

} // namespace near::queue
