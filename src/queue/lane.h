// A lane: a ring of slots with one writer and one reader, for a pair of processes that talk. See doc/queue/lane.md.
//
//   consumed (the reader's, on a line of its own; the writer reads it only when the ring looks full)
//   +------+------+------+------+------+
//   | slot | slot | slot | slot | ...  |    slots as in slot_queue.h
//   +------+------+------+------+------+    word = generation << 18 | writer << 2 | state
//      ^             ^
//   reader's head  writer's next: each is known only to its side
//
// With one writer and one reader, a message needs no compare-and-swap, no shared tail, and no store by the
// reader to the slot: only the lines of the message itself move, once. A slot of the previous generation has
// a different word, so the reader need not clear it.
//
// Invariants
//   consumed <= head <= next <= consumed + slots;
//   slots in [head, next) hold words of their own generation, all others hold words of the previous one.
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

/// The sender's end of a lane. Private to the sender.
template <class Atomics = base::Hardware>
class LaneWriter {
public:
  LaneWriter() = default;
  /// Continues at `position`, where the reader is: the lane may have had another writer before.
  LaneWriter(LaneRing<Atomics>* ring, std::uint64_t slots, std::uint32_t self, std::uint64_t position)
      : bits_(static_cast<std::uint32_t>(__builtin_ctzll(slots))), ring_(ring), limit_(position) {
    stand_at(position, self);
  }

  /// Claims the next slot; returns an empty Claim if the ring is full. The reader skips a claim that is
  /// dropped.
  Claim<Atomics> claim() {
    if (left_ == 0 && find_free(1) == 0) [[unlikely]]
      return {};
    return claim_left();
  }
  /// Like claim(), if left() > 0. Also fetches lines of later slots for writing (doc/adr/0020), but not the next
  /// slot's first line, which the reader polls. At the end of the ring these are lines of the next lane, and the four
  /// claims that fetch them do so in vain: wrapping the address would cost more in every claim.
  Claim<Atomics> claim_left() {
    --left_;
    base::fetch_for_writing(reinterpret_cast<const std::byte*>(slot_ + 1) + base::cache_line);
    base::fetch_for_writing(slot_ + fetched_ahead);
    NEAR_KILL_POINT("lane-claimed");
    return Claim<Atomics>(slot_++, word_);
  }

  /// How many claims will succeed without reading `consumed`. If this is 0, more may still succeed.
  std::uint32_t left() const { return left_; }
  /// Sets left() to 0 and returns its previous value.
  std::uint32_t give_up_left() { return std::exchange(left_, 0); }
  /// Sets left() to the number of free slots from here to the end of the ring, at most `most`, and returns it.
  std::uint32_t find_free(std::uint32_t most) {
    left_ = 0;
    if (ring_ == nullptr) return 0;
    const std::uint64_t position = next_position();
    std::uint64_t free = free_from(position, 1);
    if (free == 0) return 0;
    stand_at(position, SlotWord::claimer(word_));
    std::uint64_t to_the_end = slots() - (position & (slots() - 1));
    if (to_the_end < free) free = to_the_end;
    left_ = static_cast<std::uint32_t>(free < most ? free : most);
    return left_;
  }
  /// Whether the next `count` claims will succeed.
  bool has_free(std::uint32_t count) {
    return ring_ != nullptr && free_from(next_position(), count) >= count;
  }

private:
  static constexpr std::ptrdiff_t fetched_ahead = 4; ///< slots

  std::uint64_t next_position() const {
    return (SlotWord::generation(word_) << bits_) + static_cast<std::uint64_t>(slot_ - ring_->slots);
  }
  /// Returns the number of free slots from `position` on. Reads the reader's line only if fewer than `wanted` are known.
  std::uint64_t free_from(std::uint64_t position, std::uint64_t wanted) {
    // SYNC: lane-space. The reader has finished with the slots' bodies before we overwrite them.
    if (limit_ - position < wanted) limit_ = ring_->consumed.load_acquire() + slots();
    return limit_ - position;
  }

  std::uint64_t slots() const { return std::uint64_t{1} << bits_; }
  void stand_at(std::uint64_t position, std::uint32_t self) {
    slot_ = &ring_->slots[position & (slots() - 1)];
    word_ = SlotWord::make(position >> bits_, self, SlotState::claimed);
  }

  // `slot_` and `word_` belong to the next position. After the last slot they point past the end; find_free()
  // wraps.
  Slot<Atomics>* slot_ = nullptr;
  std::uint64_t word_ = 0;
  std::uint32_t left_ = 0;
  std::uint32_t bits_ = 0;
  LaneRing<Atomics>* ring_ = nullptr;
  std::uint64_t limit_ = 0;
};

/// The receiver's end of a lane, which it owns. Used by one thread at a time, except has_message().
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
  /// Sets the process whose messages are expected from now on.
  void expect(std::uint32_t writer) {
    writer_.store_relaxed(writer);
    stand_at(head_.load_relaxed());
  }

  /// Returns the body of the oldest message, valid until pop(); nullptr if there is none.
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

  /// Removes the message that front() returned. Returns true if this makes free slots visible to the writer.
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

  /// Checks for a message before sleeping; any thread may call it.
  bool has_message() const {
    std::uint64_t head = head_.load_relaxed();
    std::uint64_t word = ring_->slots[head & mask_].word.load_relaxed();
    return word == expected(head, SlotState::ready) || word == expected(head, SlotState::abandoned);
  }

  std::uint64_t position() const { return head_.load_relaxed(); }

private:
  /// Skips a slot that the writer has abandoned.
  [[gnu::cold]] [[gnu::noinline]] void skip() { pop(); }
  /// Tells the writer what has been consumed. This is done a quarter of the ring at a time, so that the line
  /// rarely moves and the writer never waits for the last quarter.
  [[gnu::noinline]] void publish(std::uint64_t head) {
    // SYNC: lane-space. Our reads of the bodies are complete before the writer may overwrite them.
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
  std::uint64_t ready_ = 0;       ///< the slot's word if it has a message
  LaneRing<Atomics>* ring_ = nullptr;
  std::uint64_t mask_ = 0;
  unsigned bits_ = 0;
  // Atomic because another thread of this process may call has_message() before it sleeps.
  typename Atomics::template Atomic<std::uint32_t> writer_{0};
  typename Atomics::template Atomic<std::uint64_t> head_{0};
};

} // namespace near::queue
