// Waking a rank that sleeps. See doc/queue/doorbell.md.
//
// A sender publishes a message, then checks whether the receiver sleeps. A sleeper announces that it sleeps,
// then checks for messages. Each must see the other's store, which needs a store-load barrier on both sides.
// The sleeper provides both with one expedited membarrier, so the sender needs only a plain load. Without
// membarrier the sender needs a fence.
//
//   sender:   commit slot             sleeper:   rung' = bell
//             [compiler barrier]                 first check of everything: nothing to do
//             if sleeping: ring                  sleeping = 1
//                                                membarrier (or fence)
//                                                second check: if there is a message, go on
//                                                futex wait while bell == rung'
//                                                sleeping = 0
//
// Either the sender's load comes after the sleeper's barrier and sees sleeping == 1, or the sender's commit
// came before the barrier and the second check sees the message. Events other than messages (a death, or a
// request that another thread has completed) are announced by a ring alone. The sleeper read rung' before its
// first check, so such a ring either ends its wait or came before that check.
#pragma once

#include "base/atomic.h"
#include "base/kill_point.h"

#include <cstdint>

namespace near::queue {

/// The doorbell protocol. The operations that it needs from the system are a template argument, so that model tests
/// can replace them. System: static void wait(word*, expected, timeout_ns); static void wake(word*); static void
/// barrier_all();
template <class Atomics, class System>
class DoorbellProtocol {
public:
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;

  /// Sender, after its commit: wakes the receiver if it sleeps. `sender_fences` is true if the job has no membarrier.
  static void ring_if_sleeping(Atomic<std::uint32_t>& sleeping, Atomic<std::uint32_t>& bell,
                               bool sender_fences) {
    if (is_sleeping(sleeping, sender_fences)) [[unlikely]]
      ring(sleeping, bell);
  }
  /// The first step of ring_if_sleeping(): if it returns true, call ring().
  static bool is_sleeping(const Atomic<std::uint32_t>& sleeping, bool sender_fences) {
    // SYNC: asleep. Our commit comes before our load of the flag. Without a fence of the processor, the
    // sleeper's membarrier takes its place; the compiler must keep the order in any case.
    if (sender_fences) [[unlikely]]
      Atomics::fence_store_load();
    else
      Atomics::compiler_fence();
    return sleeping.load_relaxed() != 0;
  }

  /// Wakes the owner unconditionally.
  [[gnu::noinline]] [[gnu::cold]] static void ring(Atomic<std::uint32_t>& sleeping,
                                                   Atomic<std::uint32_t>& bell) {
    NEAR_KILL_POINT("bell-needed");
    sleeping.exchange_relaxed(0); // the next sender need not ring again
    NEAR_KILL_POINT("bell-silenced");
    raise(bell);
    NEAR_KILL_POINT("bell-raised");
    System::wake(bell.address());
  }

  /// Wakes the owner but leaves the flag alone; for events other than messages.
  static void announce(Atomic<std::uint32_t>& bell) {
    raise(bell);
    System::wake(bell.address());
  }

  /// Owner, before its first check of everything that a ring may announce: returns the number to pass to
  /// sleep().
  static auto rung(Atomic<std::uint32_t>& bell) {
    // SYNC: bell. Acquire: the checks come after this load, and so does the store to `sleeping`.
    return bell.load_acquire();
  }

  /// Owner: announces that it sleeps, then sleeps unless something_there() returns true or the bell has been
  /// rung since `before`. Call awake() afterwards.
  template <class Number, class SomethingThere>
  static void sleep(Atomic<std::uint32_t>& sleeping, Atomic<std::uint32_t>& bell, const Number& before,
                    bool sender_fences, std::uint64_t timeout_ns, SomethingThere&& something_there) {
    sleeping.store_relaxed(1);
    NEAR_KILL_POINT("sleep-announced");
    // SYNC: asleep. The flag is stored before our check for messages; every sender is on one side of this
    // point.
    if (sender_fences)
      Atomics::fence_store_load();
    else
      System::barrier_all();
    NEAR_KILL_POINT("sleep-fenced");
    if (!something_there()) System::wait(bell.address(), before, timeout_ns);
    NEAR_KILL_POINT("sleep-over");
  }

  /// Owner: tells senders that they no longer need to ring. Must not be called while another thread may be
  /// asleep here, since nothing would wake it.
  static void awake(Atomic<std::uint32_t>& sleeping) { sleeping.store_relaxed(0); }

private:
  static void raise(Atomic<std::uint32_t>& bell) {
    // SYNC: bell. Release: a process that reads the new number sees what is announced. It can announce its
    // next sleep only after ring() has cleared the flag; otherwise ring() might clear the flag of that sleep.
    bell.add_release(1);
  }
};

} // namespace near::queue
