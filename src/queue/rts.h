// The state of an announced message: taken by its receiver or withdrawn by its sender, never both. See
// doc/queue/rts.md.
//
//   word = generation << 2 | state
//
//   (g, free) --announce--> (g, announced) --accept, the receiver--> (g, matched) ---retire----> (g + 1, free)
//                                 |                                                                 ^
//                                 +--cancel, the sender----------> (g, cancelled) ------------------+
//
// The receiver takes the accept step, the sender all others. An RTS names its generation, so an outdated one
// finds another word and is harmless for 2^32 uses of one descriptor.
//
// accept and cancel are relaxed: compare-and-swap decides which of the two wins, and nothing else passes
// through the word. The announced bytes reach the receiver with the message that carries the RTS. The sender
// gets its buffer back by a FIN. If it withdrew the RTS, it never lent the buffer.
//
// A receiver that finds no slot for a FIN leaves it in the descriptor, and pushes the descriptor onto the
// sender's stack of left FINs, from which the sender takes them all at once:
//
//   left --> | next | fin |--> | next | fin |--> 0     offsets of descriptors in the segment
//
// So the sender's work depends on the number of FINs left, not on how many messages it has under way. A descriptor
// is on the stack at most once: only the receiver that has accepted its message pushes it, and it is retired
// only after the sender has taken it from the stack. There is no ABA: a push is right whenever `left` holds the
// offset that the descriptor names as its next one, no matter what `left` held in between.
#pragma once

#include "base/atomic.h"
#include "queue/cooperative_copy.h"

#include <cstdint>

namespace near::queue {

enum class RtsState : std::uint64_t { free = 0, announced = 1, matched = 2, cancelled = 3 };

/// What a receiver tells the sender in a FIN that it leaves in the descriptor.
struct LeftFin {
  std::uint64_t cookie = 0;  ///< the sender's name for the transfer
  std::uint64_t outcome = 0; ///< how the transfer ended, in the transport's form
};

template <class Atomics = base::Hardware>
class alignas(base::cache_line) RtsDescriptor {
public:
  using Word = typename Atomics::template Atomic<std::uint64_t>;

  /// Sender: announces a message. Returns the generation, which goes into the RTS.
  std::uint32_t announce() {
    std::uint32_t generation = generation_of(word_.load_relaxed());
    cooperation_.begin();
    word_.store_relaxed(make(generation, RtsState::announced)); // published by the RTS's message
    return generation;
  }
  /// Sender: withdraws the RTS. Returns false if the receiver has accepted it. Call it between announce() and retire().
  bool cancel() {
    std::uint32_t generation = generation_of(word_.load_relaxed());
    std::uint64_t announced = make(generation, RtsState::announced);
    return word_.cas_relaxed(announced, make(generation, RtsState::cancelled));
  }
  /// Sender: frees the descriptor for another message, after the FIN or after cancel().
  void retire() { word_.store_relaxed(make(generation_of(word_.load_relaxed()) + 1, RtsState::free)); }

  /// Sender: returns whether the descriptor still belongs to the message announced with this generation. A FIN left here
  /// overtakes earlier messages from the receiver, which may therefore name a message that is finished.
  bool serves(std::uint32_t generation) const { return generation_of(word_.load_relaxed()) == generation; }

  /// Receiver: accepts the RTS, at most once. Returns false if the sender has withdrawn it.
  bool accept(std::uint32_t generation) {
    std::uint64_t announced = make(generation, RtsState::announced);
    return word_.cas_relaxed(announced, make(generation, RtsState::matched));
  }
  /// Receiver: returns false if accept() can no longer succeed. If it returns true, accept() may still fail.
  bool is_live(std::uint32_t generation) const {
    return word_.load_relaxed() == make(generation, RtsState::announced);
  }

  /// Receiver, after accept(): leaves a FIN when it has finished with the sender's buffer but found no slot. `self` is the
  /// descriptor's offset, which is not 0, and `left` is the sender's stack. Returns true if the stack was empty; the
  /// caller must then notify the sender. Otherwise the process that pushed onto the empty stack notifies the sender,
  /// which takes this FIN as well, because it takes everything that has been pushed since.
  bool leave_fin(Word& left, std::uint64_t self, const LeftFin& fin) {
    cookie_.store_relaxed(fin.cookie);
    outcome_.store_relaxed(fin.outcome);
    std::uint64_t top = left.load_relaxed();
    do {
      next_.store_relaxed(top);
      // SYNC: fin-left. The receiver's reads of the buffer, and the FIN, come before the descriptor is on the stack.
    } while (!left.cas_release(top, self));
    return top == 0;
  }
  /// Sender: takes all FINs that have been left, and calls use(fin) for each, last one first. at(offset) returns
  /// the descriptor, which use() may retire.
  template <class At, class Use>
  static void take_fins(Word& left, At&& at, Use&& use) {
    // SYNC: fin-left. The buffers are the sender's again: each push continues the release sequence of those below.
    std::uint64_t each = left.exchange_acquire(0);
    while (each != 0) {
      const RtsDescriptor& descriptor = at(each);
      each = descriptor.next_.load_relaxed();
      use(LeftFin{descriptor.cookie_.load_relaxed(), descriptor.outcome_.load_relaxed()});
    }
  }

  /// The cooperative copy of a message that both sides copy. Valid from announce() to retire().
  CooperativeCopy<Atomics>& cooperation() { return cooperation_; }

private:
  static constexpr std::uint64_t make(std::uint32_t generation, RtsState state) {
    return static_cast<std::uint64_t>(generation) << state_bits | static_cast<std::uint64_t>(state);
  }
  static constexpr std::uint32_t generation_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> state_bits);
  }
  static constexpr int state_bits = 2;

  Word word_{0};
  Word next_{0}, cookie_{0}, outcome_{0}; ///< valid while the descriptor is on the stack of left FINs
  CooperativeCopy<Atomics> cooperation_;
};

} // namespace near::queue
