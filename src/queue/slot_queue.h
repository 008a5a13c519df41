// The receive queue: bounded, many producers, one consumer, 128-byte slots. See doc/queue/slot_queue.md.
//
//   tail (a hint, producers only)
//     v
//   +------+------+------+------+------+      a slot, two cache lines:
//   | slot | slot | slot | slot | ...  |        +------+------------------------------------------+
//   +------+------+------+------+------+        | word | body: header and inline payload, 120 B   |
//     ^                                         +------+------------------------------------------+
//   head (the consumer's own)                     word = generation << 18 | claimer << 2 | state
//
// Position p uses slot p % slots in generation p / slots. In generation L a slot's word goes through
//   (L, free) -> (L, claimed by c) -> (L, ready) or (L, abandoned) -> (L + 1, free)
// so equal words never recur: no ABA within 2^46 generations.
//
// Invariants
//   every position below tail is claimed or done (tail is stored only after tail - 1 has been claimed);
//   the positions of one producer increase, so its messages arrive in order;
//   the consumer skips a slot that a dead process has claimed, so nobody waits for it.
//
// Progress: a producer fails only if the queue is full; whenever a producer has to retry, another one has
// succeeded (lock-free). The consumer never writes `tail`, and waits for a live producer only between its
// claim and its commit.
#pragma once

#include "base/atomic.h"
#include "base/kill_point.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace near::queue {

inline constexpr std::size_t slot_bytes = 128;
inline constexpr std::size_t slot_body_bytes = slot_bytes - sizeof(std::uint64_t);

enum class SlotState : std::uint64_t { free = 0, claimed = 1, ready = 2, abandoned = 3 };

/// Packs and unpacks the word of a slot.
struct SlotWord {
  static constexpr unsigned claimer_shift = 2, generation_shift = 18;
  static constexpr std::uint64_t make(std::uint64_t generation, std::uint32_t claimer, SlotState state) {
    return generation << generation_shift | static_cast<std::uint64_t>(claimer & 0xffff) << claimer_shift |
           static_cast<std::uint64_t>(state);
  }
  static constexpr SlotState state(std::uint64_t word) { return static_cast<SlotState>(word & 3); }
  static constexpr std::uint32_t claimer(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> claimer_shift) & 0xffff;
  }
  static constexpr std::uint64_t generation(std::uint64_t word) { return word >> generation_shift; }
};

template <class Atomics = base::Hardware>
struct alignas(slot_bytes) Slot {
  typename Atomics::template Atomic<std::uint64_t> word{0};
  std::byte body[slot_body_bytes];
};

/// The shared part. `tail` is on a line of its own: producers write it, the consumer never reads it.
template <class Atomics = base::Hardware>
struct SlotQueue {
  alignas(slot_bytes) typename Atomics::template Atomic<std::uint64_t> tail{0};
  alignas(slot_bytes) Slot<Atomics> slots[1]; // as many as the owner laid out

  static constexpr std::size_t bytes(std::uint64_t count) {
    return slot_bytes + count * sizeof(Slot<Atomics>);
  }
};

/// A claimed slot: fill body(), then call commit(). If it is destroyed without a commit, the consumer skips the slot.
template <class Atomics = base::Hardware>
class Claim {
public:
  Claim() = default;
  Claim(Slot<Atomics>* slot, std::uint64_t claimed) : slot_(slot), claimed_(claimed) {}
  Claim(Claim&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), claimed_(other.claimed_) {}
  Claim& operator=(Claim&& other) noexcept {
    if (this != &other) {
      finish(SlotState::abandoned);
      slot_ = std::exchange(other.slot_, nullptr);
      claimed_ = other.claimed_;
    }
    return *this;
  }
  ~Claim() { finish(SlotState::abandoned); }

  explicit operator bool() const { return slot_ != nullptr; }
  std::byte* body() const { return slot_->body; }
  void commit() { finish(SlotState::ready); }

private:
  void finish(SlotState state) {
    if (slot_ == nullptr) return;
    NEAR_KILL_POINT("slot-filled");
    // SYNC: slot-ready. A consumer that sees `ready` must see the body; release orders the stores to the body
    // before it.
    slot_->word.store_release(claimed_ - static_cast<std::uint64_t>(SlotState::claimed) +
                              static_cast<std::uint64_t>(state));
    NEAR_KILL_POINT("slot-committed");
    slot_ = nullptr;
  }

  Slot<Atomics>* slot_ = nullptr;
  std::uint64_t claimed_ = 0;
};

/// A producer's end of one receiver's queue. Private to the producer.
template <class Atomics = base::Hardware>
class Producer {
public:
  Producer() = default;
  Producer(SlotQueue<Atomics>* queue, std::uint64_t slots, std::uint32_t self)
      : queue_(queue), mask_(slots - 1), bits_(static_cast<unsigned>(__builtin_ctzll(slots))), self_(self) {}

  /// Claims the next slot; returns an empty Claim if the queue is full.
  Claim<Atomics> claim() {
    std::uint64_t position = queue_->tail.load_relaxed(); // a hint: if too small, we search longer
    if (position < next_) position = next_;
    for (;;) {
      Slot<Atomics>& slot = queue_->slots[position & mask_];
      std::uint64_t generation = position >> bits_;
      std::uint64_t word = slot.word.load_relaxed(); // only a hint: the swap below decides
      std::uint64_t seen = SlotWord::generation(word);
      if (seen == generation && SlotWord::state(word) == SlotState::free) {
        std::uint64_t mine = SlotWord::make(generation, self_, SlotState::claimed);
        // SYNC: slot-free. The consumer has freed this slot after reading its body; acquire keeps our stores
        // to the body after that.
        if (!slot.word.cas_acquire(word, mine))
          continue; // another producer was faster: read the word of the slot again
        NEAR_KILL_POINT("slot-claimed");
        next_ = position + 1;
        // Relaxed, since a process that reads an older tail only searches longer. A slower producer may even
        // reset it.
        queue_->tail.store_relaxed(next_);
        return Claim<Atomics>(&slot, mine);
      }
      if (seen < generation) return {}; // still holds a message of the previous generation: full
      ++position;                       // claimed in this generation, or already done
    }
  }

private:
  SlotQueue<Atomics>* queue_ = nullptr;
  std::uint64_t mask_ = 0;
  unsigned bits_ = 0;
  std::uint32_t self_ = 0;
  std::uint64_t next_ = 0; ///< one past the last position that this producer claimed
};

/// The consumer's end of its receive queue. Used by one thread at a time, except has_message().
template <class Atomics = base::Hardware>
class Consumer {
public:
  struct Entry {
    const std::byte* body = nullptr; ///< nullptr if there is no message
    std::uint32_t claimer = 0;
  };

  Consumer() = default;
  /// Starts at the first position of a new queue of `slots` slots, a power of two.
  void attach(SlotQueue<Atomics>* queue, std::uint64_t slots) {
    queue_ = queue;
    mask_ = slots - 1;
    bits_ = static_cast<unsigned>(__builtin_ctzll(slots));
    stand_at(0);
  }

  /// Whether front() has anything to examine: a message, or a claim.
  bool has_entry() const { return SlotWord::state(slot_->word.load_relaxed()) != SlotState::free; }

  /// Returns the oldest message, valid until pop(). is_dead(claimer) is called only for a slot that is claimed but
  /// not ready. It may return true only if that process can no longer write and all its writes are visible.
  template <class IsDead>
  Entry front(IsDead&& is_dead) {
    for (;;) {
      Slot<Atomics>& slot = *slot_;
      // SYNC: slot-ready. Pairs with the producer's commit: its body is visible from here.
      std::uint64_t word = slot.word.load_acquire();
      switch (SlotWord::state(word)) {
      case SlotState::free: return {};
      case SlotState::ready: return {slot.body, SlotWord::claimer(word)};
      case SlotState::abandoned: pop(); continue;
      case SlotState::claimed:
        if (!is_dead(SlotWord::claimer(word))) return {};
        // The claimer may have committed between our load and its death; then the message is valid. Relaxed,
        // because is_dead() has seen all writes of the dead process, and a ready slot is loaded again above.
        if (slot.word.load_relaxed() == word) pop();
        continue;
      }
    }
  }

  /// Frees the slot that front() returned.
  void pop() {
    std::uint64_t generation = (head_.load_relaxed() >> bits_) + 1;
    NEAR_KILL_POINT("slot-read");
    // SYNC: slot-free. Our reads of the body are complete before a producer may overwrite it.
    slot_->word.store_release(SlotWord::make(generation, 0, SlotState::free));
    NEAR_KILL_POINT("slot-freed");
    stand_at(head_.load_relaxed() + 1);
  }

  /// Whether a message is ready; the check before sleeping.
  bool has_message() const {
    SlotState state = SlotWord::state(queue_->slots[head_.load_relaxed() & mask_].word.load_relaxed());
    return state == SlotState::ready || state == SlotState::abandoned;
  }

private:
  void stand_at(std::uint64_t head) {
    head_.store_relaxed(head);
    slot_ = &queue_->slots[head & mask_];
  }

  SlotQueue<Atomics>* queue_ = nullptr;
  Slot<Atomics>* slot_ = nullptr; ///< of `head_`
  std::uint64_t mask_ = 0;
  unsigned bits_ = 0;
  /// Atomic because another thread of this process may call has_message() before it sleeps.
  typename Atomics::template Atomic<std::uint64_t> head_{0};
};

} // namespace near::queue
