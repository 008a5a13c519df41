// A lane: the receive queue of one pair that talks. See doc/queue/lane.md.
//
//   consumed (the reader's, on a line of its own; read by the writer only when the ring looks full)
//   +------+------+------+------+------+
//   | slot | slot | slot | slot | ...  |    slots and words as in slot_queue.h: lap << 18 | writer << 2 |
//   state
//   +------+------+------+------+------+
//      ^             ^
//   reader's head  writer's next: each known to its side alone
//
// One writer and one reader, so a message costs no compare-and-swap, no shared tail and no store of the
// reader to the slot: only the lines of the message itself move, once. A slot of the lap before has another
// word, so the reader needs no clearing.
//
// Invariants
//   consumed <= head <= next <= consumed + slots;
//   the slots in [head, next) hold words of their own lap, all others hold words of the lap before.
#pragma once

#include "base/kill_point.h"
#include "queue/slot_queue.h"

namespace near::queue {

template <class Atomics = base::Hardware>
struct LaneRing {
  alignas(slot_bytes) typename Atomics::template Atomic<std::uint64_t> consumed{0};
  alignas(slot_bytes) Slot<Atomics> slots[1]; // as many as the owner laid out

  static constexpr std::uint64_t bytes(std::uint64_t count) {
    return slot_bytes + count * sizeof(Slot<Atomics>);
  }
};

/// The sender's end. Private to it.
template <class Atomics = base::Hardware>
class LaneWriter {
public:
  LaneWriter() = default;
  /// Goes on at `position`, where the reader stands: the lane may have had another writer before.
  LaneWriter(LaneRing<Atomics>* ring, std::uint64_t slots, std::uint32_t self, std::uint64_t position)
      : ring_(ring), mask_(slots - 1), bits_(static_cast<unsigned>(__builtin_ctzll(slots))), self_(self),
        next_(position), limit_(position) {}

  /// The next slot; an empty Claim when the ring is full. A claim that is dropped is skipped by the reader.
  Claim<Atomics> claim() {
    if (next_ == limit_) [[unlikely]] {
      // SYNC: lane-space. The reader is done with the slots' bodies before we write them again.
      limit_ = ring_->consumed.load_acquire() + mask_ + 1;
      if (next_ == limit_) return {};
    }
    std::uint64_t word = SlotWord::make(next_ >> bits_, self_, SlotState::claimed);
    NEAR_KILL_POINT("lane-claimed");
    return Claim<Atomics>(&ring_->slots[next_++ & mask_], word);
  }

private:
  LaneRing<Atomics>* ring_ = nullptr;
  std::uint64_t mask_ = 0;
  unsigned bits_ = 0;
  std::uint32_t self_ = 0;
  std::uint64_t next_ = 0, limit_ = 0;
};

/// The owner's end. One thread at a time, has_message() aside.
template <class Atomics = base::Hardware>
class LaneReader {
public:
  LaneReader() = default;
  void attach(LaneRing<Atomics>* ring, std::uint64_t slots) {
    ring_ = ring;
    mask_ = slots - 1;
    bits_ = static_cast<unsigned>(__builtin_ctzll(slots));
  }
  /// From now on messages of this writer are expected.
  void expect(std::uint32_t writer) { writer_.store_relaxed(writer); }

  /// The oldest message's body, which stays until pop(); nullptr: nothing there.
  const std::byte* front() {
    for (;;) {
      std::uint64_t head = head_.load_relaxed();
      Slot<Atomics>& slot = ring_->slots[head & mask_];
      // SYNC: slot-ready. Pairs with the writer's commit: its body is visible from here.
      std::uint64_t word = slot.word.load_acquire();
      if (word == expected(head, SlotState::ready)) return slot.body;
      if (word != expected(head, SlotState::abandoned)) return nullptr;
      pop();
    }
  }

  void pop() {
    std::uint64_t head = head_.load_relaxed() + 1;
    NEAR_KILL_POINT("lane-read");
    head_.store_relaxed(head);
    // A quarter of the ring at a time, so the line moves seldom, and the writer never waits for the last
    // quarter. SYNC: lane-space. Our reads of the bodies are done before the writer may overwrite them.
    if ((head & (mask_ >> 2)) == 0) ring_->consumed.store_release(head);
  }

  /// The look before sleeping; any thread.
  bool has_message() const {
    std::uint64_t head = head_.load_relaxed();
    std::uint64_t word = ring_->slots[head & mask_].word.load_relaxed();
    return word == expected(head, SlotState::ready) || word == expected(head, SlotState::abandoned);
  }

  std::uint64_t position() const { return head_.load_relaxed(); }

private:
  std::uint64_t expected(std::uint64_t head, SlotState state) const {
    return SlotWord::make(head >> bits_, writer_.load_relaxed(), state);
  }

  LaneRing<Atomics>* ring_ = nullptr;
  std::uint64_t mask_ = 0;
  unsigned bits_ = 0;
  // Atomic because another thread of this process may look before it sleeps.
  typename Atomics::template Atomic<std::uint32_t> writer_{0};
  typename Atomics::template Atomic<std::uint64_t> head_{0};
};

} // namespace near::queue
