// A lane: the receive queue of one pair that talks. See doc/queue/lane.md.
//
//   consumed (the reader's, on a line of its own; read by the writer only when the ring looks full)
//   +------+------+------+------+------+
//   | slot | slot | slot | slot | ...  |    slots and words as in slot_queue.h: generation << 18 | writer << 2 |
//   state
//   +------+------+------+------+------+
//      ^             ^
//   reader's head  writer's next: each known to its side alone
//
// One writer and one reader, so a message costs no compare-and-swap, no shared tail and no store of the
// reader to the slot: only the lines of the message itself move, once. A slot of the generation before has another
// word, so the reader needs no clearing.
//
// Invariants
//   consumed <= head <= next <= consumed + slots;
//   the slots in [head, next) hold words of their own generation, all others hold words of the generation before.
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
      : bits_(static_cast<std::uint32_t>(__builtin_ctzll(slots))), ring_(ring), limit_(position) {
    stand_at(position, self);
  }

  /// The next slot; an empty Claim when the ring is full. A claim that is dropped is skipped by the reader.
  Claim<Atomics> claim() {
    if (left_ == 0 && look(1) == 0) [[unlikely]]
      return {};
    return claim_left();
  }
  /// The same when left() > 0.
  Claim<Atomics> claim_left() {
    --left_;
    NEAR_KILL_POINT("lane-claimed");
    return Claim<Atomics>(slot_++, word_);
  }

  /// So many claims succeed without a look at the ring. 0 says nothing.
  std::uint32_t left() const { return left_; }
  /// Sets left() to 0; returns what it was.
  std::uint32_t give_up_left() { return std::exchange(left_, 0); }
  /// Sets left() to how many free slots follow each other from here in the ring, at most `most`; returns it.
  std::uint32_t look(std::uint32_t most) {
    left_ = 0;
    if (ring_ == nullptr) return 0;
    std::uint64_t position =
        (SlotWord::generation(word_) << bits_) + static_cast<std::uint64_t>(slot_ - ring_->slots);
    if (position == limit_) {
      // SYNC: lane-space. The reader is done with the slots' bodies before we write them again.
      limit_ = ring_->consumed.load_acquire() + slots();
      if (position == limit_) return 0;
    }
    stand_at(position, SlotWord::claimer(word_));
    std::uint64_t to_the_end = slots() - (position & (slots() - 1)), free = limit_ - position;
    if (to_the_end < free) free = to_the_end;
    left_ = static_cast<std::uint32_t>(free < most ? free : most);
    return left_;
  }

private:
  std::uint64_t slots() const { return std::uint64_t{1} << bits_; }
  void stand_at(std::uint64_t position, std::uint32_t self) {
    slot_ = &ring_->slots[position & (slots() - 1)];
    word_ = SlotWord::make(position >> bits_, self, SlotState::claimed);
  }

  // `slot_` and `word_` are the next position's, up to one behind the ring's end; look() turns back.
  Slot<Atomics>* slot_ = nullptr;
  std::uint64_t word_ = 0;
  std::uint32_t left_ = 0;
  std::uint32_t bits_ = 0;
  LaneRing<Atomics>* ring_ = nullptr;
  std::uint64_t limit_ = 0;
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
    stand_at(0);
  }
  /// From now on messages of this writer are expected.
  void expect(std::uint32_t writer) {
    writer_.store_relaxed(writer);
    stand_at(head_.load_relaxed());
  }

  /// The oldest message's body, which stays until pop(); nullptr: nothing there.
  const std::byte* front() {
    for (;;) {
      // SYNC: slot-ready. Pairs with the writer's commit: its body is visible from here.
      std::uint64_t word = slot_->word.load_acquire();
      if (word == ready_) return slot_->body;
      if (word != abandoned()) [[likely]]
        return nullptr;
      skip();
    }
  }

  /// Is done with the message that front() returned; true when the writer sees more space now.
  [[gnu::always_inline]] bool pop() {
    std::uint64_t head = head_.load_relaxed() + 1;
    NEAR_KILL_POINT("lane-read");
    head_.store_relaxed(head);
    ++slot_;
    if ((head & (mask_ >> 2)) != 0) [[likely]]
      return false;
    publish(head);
    return true;
  }

  /// The look before sleeping; any thread.
  bool has_message() const {
    std::uint64_t head = head_.load_relaxed();
    std::uint64_t word = ring_->slots[head & mask_].word.load_relaxed();
    return word == expected(head, SlotState::ready) || word == expected(head, SlotState::abandoned);
  }

  std::uint64_t position() const { return head_.load_relaxed(); }

private:
  /// Passes a slot that its writer has abandoned.
  [[gnu::cold]] [[gnu::noinline]] void skip() { pop(); }
  /// Tells the writer how much was consumed: a quarter of the ring at a time, so the line moves seldom, and the
  /// writer never waits for the last quarter.
  [[gnu::noinline]] void publish(std::uint64_t head) {
    // SYNC: lane-space. Our reads of the bodies are done before the writer may overwrite them.
    ring_->consumed.store_release(head);
    if ((head & mask_) == 0) stand_at(head);
  }
  void stand_at(std::uint64_t head) {
    slot_ = &ring_->slots[head & mask_];
    ready_ = expected(head, SlotState::ready);
  }
  std::uint64_t abandoned() const {
    return ready_ - static_cast<std::uint64_t>(SlotState::ready) +
           static_cast<std::uint64_t>(SlotState::abandoned);
  }
  std::uint64_t expected(std::uint64_t head, SlotState state) const {
    return SlotWord::make(head >> bits_, writer_.load_relaxed(), state);
  }

  Slot<Atomics>* slot_ = nullptr; ///< of `head_`
  std::uint64_t ready_ = 0;       ///< its word when the message is there
  LaneRing<Atomics>* ring_ = nullptr;
  std::uint64_t mask_ = 0;
  unsigned bits_ = 0;
  // Atomic because another thread of this process may look before it sleeps.
  typename Atomics::template Atomic<std::uint32_t> writer_{0};
  typename Atomics::template Atomic<std::uint64_t> head_{0};
};

} // namespace near::queue
