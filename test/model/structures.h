// The structures under test, laid out for the model, and messages that show whether they arrived whole.
#pragma once

#include "model.h"

#include "queue/doorbell.h"
#include "queue/lane.h"
#include "queue/slot_queue.h"

#include <array>
#include <new>

namespace near::model {

using queue::slot_bytes;
using Claim = queue::Claim<Weak>;
using Doorbell = queue::DoorbellProtocol<Weak, WeakSystem>;

/// The text for a slot's word in a trace, such as "generation 1 ready by 2".
inline std::string slot_word_text(Value word) {
  static constexpr const char* states[] = {"free", "claimed", "ready", "abandoned"};
  auto state = queue::SlotWord::state(word);
  std::string text = "generation " + std::to_string(queue::SlotWord::generation(word)) + " " +
                     states[static_cast<int>(state)];
  if (state != queue::SlotState::free) text += " by " + std::to_string(queue::SlotWord::claimer(word));
  return text;
}

/// A Ring (SlotQueue or LaneRing) of `count` slots.
template <class Ring>
class RingMemory {
public:
  RingMemory(Stage& stage, std::uint64_t count, const std::string& name) {
    ring_ = new (stage.memory(Ring::bytes(count), alignof(Ring))) Ring;
    for (std::uint64_t i = 1; i < count; ++i) new (&ring_->slots[i]) queue::Slot<Weak>;
    for (std::uint64_t i = 0; i < count; ++i)
      stage.name(ring_->slots[i].word, name + "[" + std::to_string(i) + "]", slot_word_text);
  }
  Ring* operator->() const { return ring_; }
  Ring* get() const { return ring_; }

private:
  Ring* ring_;
};

/// A receive queue with its consumer.
class ModelQueue {
public:
  ModelQueue(Stage& stage, std::uint64_t slots) : memory_(stage, slots, "slot"), slots_(slots) {
    stage.name(memory_->tail, "tail");
    consumer.attach(memory_.get(), slots);
  }
  queue::Producer<Weak> producer(std::uint32_t self) { return {memory_.get(), slots_, self}; }
  queue::Consumer<Weak> consumer;

private:
  RingMemory<queue::SlotQueue<Weak>> memory_;
  std::uint64_t slots_;
};

/// Writes message `number` of `sender` at both ends of a slot's body, as plain memory.
inline void write_message(const Claim& claim, std::uint32_t sender, std::uint32_t number) {
  put(claim.body(), sender << 16 | number);
  put(claim.body() + queue::slot_body_bytes - 4, sender << 16 | number);
}

/// Checks arriving messages: whole, each once, and in the order of their sender.
class Inbox {
public:
  void take(const std::byte* body, std::uint32_t sender) {
    auto begin = get<std::uint32_t>(body);
    auto end = get<std::uint32_t>(body + queue::slot_body_bytes - 4);
    require(begin == end, "a message arrives whole");
    require(begin >> 16 == sender, "a message arrives as its sender's");
    require((begin & 0xffff) == count_[sender], "one sender's messages arrive in their order, each once");
    ++count_[sender];
  }
  std::uint32_t count(std::uint32_t sender) const { return count_[sender]; }

private:
  std::array<std::uint32_t, max_threads> count_{};
};

} // namespace near::model
