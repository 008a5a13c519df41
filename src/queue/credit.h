// Flow control of one direction of a pair: how many messages the sender may have in the receiver's memory.
// See doc/queue/credit.md.
//
//   sender                               receiver
//   sent - released < limit: send  --->  keeps it, consumes it, frees its memory
//   released  <------------------------  released += 1, in the receiver's region, one word for each sender
//
// Both counters only grow and wrap round together, so the difference is right as long as limit < 2^31.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

/// How many messages of one sender the receiver has released. In the receiver's region.
///
/// Relaxed on both sides: the memory that it speaks of is the receiver's own, so nothing but the number
/// passes through it. A number that is read late only delays a message.
template <class Atomics = base::Hardware>
class CreditCounter {
public:
  CreditCounter() = default;
  explicit CreditCounter(std::uint32_t first) : released_(first) {}
  /// Receiver, the only writer.
  void give_back() { released_.store_relaxed(released_.load_relaxed() + 1); }
  std::uint32_t released() const { return released_.load_relaxed(); }

private:
  typename Atomics::template Atomic<std::uint32_t> released_{0};
};

/// The sender's account with one receiver. Private to the sender.
template <class Atomics = base::Hardware>
class CreditAccount {
public:
  CreditAccount() = default;
  /// Nothing is under way yet.
  explicit CreditAccount(const CreditCounter<Atomics>* counter)
      : counter_(counter), sent_(counter->released()), released_(sent_) {}

  /// Whether one more may be sent. The receiver's line is read only when the credit seems used up, so the
  /// line stays with the receiver.
  bool available(std::uint32_t limit) {
    if (sent_ - released_ < limit) [[likely]]
      return true;
    released_ = counter_->released();
    return sent_ - released_ < limit;
  }
  void spend(std::uint32_t messages = 1) { sent_ += messages; }
  /// Messages that were paid for are not sent after all.
  void take_back(std::uint32_t messages) { sent_ -= messages; }
  /// How many more may be sent without another look at the receiver's line.
  std::uint32_t left(std::uint32_t limit) const {
    std::uint32_t unknown = sent_ - released_;
    return unknown < limit ? limit - unknown : 0;
  }

private:
  const CreditCounter<Atomics>* counter_ = nullptr;
  std::uint32_t sent_ = 0, released_ = 0;
};

} // namespace near::queue
