// Waking a rank that sleeps. See doc/queue/doorbell.md.
//
// A sender publishes a message, then looks whether the receiver sleeps; a sleeper says that it sleeps, then
// looks for messages. Each must see the other's store, which needs a store-load barrier on both sides. The
// sleeper buys both with one expedited membarrier, so the sender's side is a plain load; without membarrier
// the sender fences.
//
//   sender:   commit slot             sleeper:   bell' = bell
//             [compiler barrier]                 sleeping = 1
//             if sleeping: ring                  membarrier (or fence)
//                                                if a message is there: sleeping = 0, go on
//                                                futex wait while bell == bell'
//
// Either the sender's load comes after the sleeper's barrier, and sees sleeping == 1; or the sender's earlier
// commit comes before it, and the sleeper's look sees the message.
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
    if (sender_fences)
      Atomics::fence_store_load();
    else
      Atomics::compiler_fence(); // the sleeper's membarrier stands for the processor's fence
    if (sleeping.load_relaxed() != 0) [[unlikely]]
      ring(sleeping, bell);
  }

  /// Wakes the owner in any case.
  [[gnu::noinline]] [[gnu::cold]] static void ring(Atomic<std::uint32_t>& sleeping,
                                                   Atomic<std::uint32_t>& bell) {
    NEAR_KILL_POINT("bell-needed");
    sleeping.exchange_relaxed(0); // the next sender need not ring again
    // SYNC: bell. A sleeper between its look and its wait finds the word changed.
    NEAR_KILL_POINT("bell-silenced");
    bell.add_acq_rel(1);
    NEAR_KILL_POINT("bell-raised");
    System::wake(bell.address());
  }

  /// Owner: sleeps unless something_there() after saying so.
  template <class SomethingThere>
  static void sleep(Atomic<std::uint32_t>& sleeping, Atomic<std::uint32_t>& bell, bool sender_fences,
                    std::uint64_t timeout_ns, SomethingThere&& something_there) {
    // SYNC: bell. Acquire: the look below comes after this, so a ring in between is either seen or ends the
    // wait.
    std::uint32_t before = bell.load_acquire();
    sleeping.store_relaxed(1);
    NEAR_KILL_POINT("sleep-announced");
    if (sender_fences)
      Atomics::fence_store_load();
    else
      System::barrier_all();
    NEAR_KILL_POINT("sleep-fenced");
    if (!something_there()) System::wait(bell.address(), before, timeout_ns);
    NEAR_KILL_POINT("sleep-over");
    sleeping.store_relaxed(0);
  }
};

} // namespace near::queue
