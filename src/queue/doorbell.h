// Waking a rank that sleeps. See doc/queue/doorbell.md.
//
// A sender publishes a message, then looks whether the receiver sleeps; a sleeper says that it sleeps, then
// looks for messages. Each must see the other's store, which needs a store-load barrier on both sides. The
// sleeper buys both with one expedited membarrier, so the sender's side is a plain load; without membarrier
// the sender fences.
//
//   sender:   commit slot             sleeper:   rung' = bell
//             [compiler barrier]                 a first look at everything: nothing to do
//             if sleeping: ring                  sleeping = 1
//                                                membarrier (or fence)
//                                                if a message is there: go on
//                                                futex wait while bell == rung'
//                                                sleeping = 0
//
// Either the sender's load comes after the sleeper's barrier, and sees sleeping == 1; or the sender's earlier
// commit comes before it, and the sleeper's look sees the message. What is no message (a death, a request
// that another thread completed) is announced by a ring alone: the sleeper took rung' before it first looked,
// so such a ring ends its wait or came before that look.
#pragma once

#include "base/atomic.h"
#include "base/kill_point.h"

#include <cstdint>

namespace near::queue {

/// Operations that the protocol needs from the system; a template so that model tests bring their own.
/// System: static void wait(word*, expected, timeout_ns); static void wake(word*); static void barrier_all();
template <class Atomics, class System>
class DoorbellProtocol {
public:
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;

  /// Sender, after its commit. `sender_fences`: the job has no membarrier.
  static void ring_if_sleeping(Atomic<std::uint32_t>& sleeping, Atomic<std::uint32_t>& bell,
                               bool sender_fences) {
    if (is_sleeping(sleeping, sender_fences)) [[unlikely]]
      ring(sleeping, bell);
  }
  /// The same in two steps: ring() must follow when this is true.
  static bool is_sleeping(const Atomic<std::uint32_t>& sleeping, bool sender_fences) {
    // SYNC: asleep. Our commit before our look at the flag. Without a fence of the processor the sleeper's
    // membarrier stands for it; the compiler must keep the order all the same.
    if (sender_fences) [[unlikely]]
      Atomics::fence_store_load();
    else
      Atomics::compiler_fence();
    return sleeping.load_relaxed() != 0;
  }

  /// Wakes the owner in any case.
  [[gnu::noinline]] [[gnu::cold]] static void ring(Atomic<std::uint32_t>& sleeping,
                                                   Atomic<std::uint32_t>& bell) {
    NEAR_KILL_POINT("bell-needed");
    sleeping.exchange_relaxed(0); // the next sender need not ring again
    NEAR_KILL_POINT("bell-silenced");
    raise(bell);
    NEAR_KILL_POINT("bell-raised");
    System::wake(bell.address());
  }

  /// Wakes the owner and leaves the flag alone: for who announces no message.
  static void announce(Atomic<std::uint32_t>& bell) {
    raise(bell);
    System::wake(bell.address());
  }

  /// Owner, before its last look at everything that a ring may announce: the number that sleep() is given.
  static auto rung(Atomic<std::uint32_t>& bell) {
    // SYNC: bell. Acquire: the looks below it come after it, and so does the store to `sleeping`.
    return bell.load_acquire();
  }

  /// Owner: sleeps unless something_there() after saying so, or the bell was rung since `before`. Call
  /// awake() afterwards.
  template <class Number, class SomethingThere>
  static void sleep(Atomic<std::uint32_t>& sleeping, Atomic<std::uint32_t>& bell, const Number& before,
                    bool sender_fences, std::uint64_t timeout_ns, SomethingThere&& something_there) {
    sleeping.store_relaxed(1);
    NEAR_KILL_POINT("sleep-announced");
    // SYNC: asleep. The flag before our look for messages, and every sender on one side of this point.
    if (sender_fences)
      Atomics::fence_store_load();
    else
      System::barrier_all();
    NEAR_KILL_POINT("sleep-fenced");
    if (!something_there()) System::wait(bell.address(), before, timeout_ns);
    NEAR_KILL_POINT("sleep-over");
  }

  /// Owner: senders need not ring any more. Not while another thread may be asleep here: it would not be
  /// woken.
  static void awake(Atomic<std::uint32_t>& sleeping) { sleeping.store_relaxed(0); }

private:
  static void raise(Atomic<std::uint32_t>& bell) {
    // SYNC: bell. Release: whoever reads the new number sees what is announced, and says that it sleeps again
    // only after the flag was cleared in ring(); else it would sleep on with a flag that nobody heeds.
    bell.add_release(1);
  }
};

} // namespace near::queue
