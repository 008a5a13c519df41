// Waking processes that sleep until a resource is free again: a slot of another process's queue or lane, one
// of their own packets, or a lock. See doc/queue/flow_control.md.
//
//   waiting process                               process that frees the resource
//   rung = bell                                   free the slot, or return the packet
//   first check: nothing free                     [compiler barrier, or fence]
//   waiters |= itself                             if waiters: take them all, raise the bell of each
//   membarrier (or fence)
//   second check: if something is free, go on
//   sleep on the bell unless it was raised since `rung` was read
//
// Either the load of `waiters` comes after the waiting process's barrier and sees its bit, or the resource
// was freed before the second check and the check finds it. As with the doorbell's `sleeping`, the waiting
// process pays for both sides. Every process in `waiters` gets its bell raised whether or not it sleeps yet:
// it read `rung` before, so a sleep that begins later returns at once. A process that has continued for another
// reason stays in `waiters`; its bell is raised once for nothing.
//
// A process that must not wait can leave a note instead, where the owner of the queue finds it, then registers, and
// checks a second time. If there is still no slot, the owner of the queue will take messages, find the bit in
// `waiters`, and then the note. This is how a FIN is left in its RTS descriptor (doc/queue/rts.md).
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

/// The flow-control protocol. System is as in DoorbellProtocol.
template <class Atomics, class System>
class FlowControl {
public:
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;

  /// Waiting process: registers itself in one `waiters` word. Call it for every process that may free the
  /// resource, then call before_recheck().
  static void add_waiter(Atomic<std::uint64_t>& waiters, std::uint64_t self) {
    // SYNC: note-left. This process's note, if it leaves one, is there before its bit.
    waiters.or_release(self);
  }

  /// Waiting process: to be called between the last add_waiter() and the second check.
  static void before_recheck(bool fences) {
    // SYNC: waiters. Our bits are visible before our second check; every other process is on one side of this
    // point.
    if (fences)
      Atomics::fence_store_load();
    else
      System::barrier_all();
  }

  /// Process that has freed something: calls announce(bits) if there are waiters. announce() raises the bell of
  /// each of them, by DoorbellProtocol::announce.
  template <class Announce>
  static void wake_waiters(Atomic<std::uint64_t>& waiters, bool fences, Announce&& announce) {
    // SYNC: waiters. What we freed is visible before we read the word.
    if (fences)
      Atomics::fence_store_load();
    else
      Atomics::compiler_fence();
    if (waiters.load_relaxed() != 0) [[unlikely]]
      // SYNC: note-left. The notes of those whose bits are taken are seen from here on.
      announce(std::uint64_t{waiters.exchange_acquire(0)});
  }
};

} // namespace near::queue
