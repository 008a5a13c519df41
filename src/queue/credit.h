// Flow control between a sender and a receiver: it bounds how many of the sender's messages are in the
// receiver's memory. See doc/queue/credit.md.
//
//   sender                               receiver
//   sent - released < limit: send  --->  keeps it, consumes it, frees its memory
//   released  <------------------------  released += 1, in the receiver's region, one word for each sender
//
// Both counters only grow, and they wrap around together, so the difference is right as long as limit < 2^31.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

/// Counts how many messages of one sender the receiver has released. Lies in the receiver's region.
///
/// Relaxed on both sides: the memory that was released is the receiver's own, so only the number is
/// communicated. Reading an old number merely delays a message.
template <class Atomics = base::Hardware>
class CreditCounter {
public:
  CreditCounter() = default;
  explicit CreditCounter(std::uint32_t first) : released_(first) {}
  /// Releases one message. Called by the receiver, the only writer.
  void give_back() { released_.store_relaxed(released_.load_relaxed() + 1); }
  std::uint32_t released() const { return released_.load_relaxed(); }

private:
  typename Atomics::template Atomic<std::uint32_t> released_{0};
};

/// The sender's account of its credits with one receiver. Private to the sender.
template <class Atomics = base::Hardware>
class CreditAccount {
public:
  CreditAccount() = default;
  /// Starts with no message under way.
  explicit CreditAccount(const CreditCounter<Atomics>* counter)
      : counter_(counter), sent_(counter->released()), released_(sent_) {}

  /// Whether the sender may send one more message. It reads the receiver's line only when the credit seems
  /// used up, so that the line stays in the receiver's cache.
  bool available(std::uint32_t limit) {
    if (sent_ - released_ < limit) [[likely]]
      return true;
    released_ = counter_->released();
    return sent_ - released_ < limit;
  }
  void spend(std::uint32_t messages = 1) { sent_ += messages; }
  /// Returns the credit of messages that were not sent after all.
  void take_back(std::uint32_t messages) { sent_ -= messages; }
  /// How many more messages may be sent without reading the receiver's line.
  std::uint32_t left(std::uint32_t limit) const {
    std::uint32_t unknown = sent_ - released_;
    return unknown < limit ? limit - unknown : 0;
  }

private:
  const CreditCounter<Atomics>* counter_ = nullptr;
  std::uint32_t sent_ = 0, released_ = 0;
};

} // namespace near::queue
