// A shared and exclusive lock in shared memory: what MPI_Win_lock takes at its target, and what keeps the
// elements of concurrent accumulates whole. See doc/queue/shared_lock.md.
//
//   state     bit 63: held exclusively; bit 62: a process waits for that; below: how many hold it shared
//   waiters   processes that sleep until the lock is released (queue/flow_control.h)
//
// A process that waits for the exclusive lock keeps others from taking the lock shared, so a stream of
// them does not make it wait for ever. There is no order beyond that. The lock does not know its holders:
// when one dies, the lock stays held; the launcher ends the job, so nobody waits for it longer than that.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

template <class Atomics = base::Hardware>
class SharedLock {
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;
  static constexpr std::uint64_t exclusive = 1ull << 63, waits = 1ull << 62;

public:
  /// Takes the lock shared. Returns false if a process holds it exclusively, or waits for that.
  bool try_shared() {
    std::uint64_t seen = state.load_relaxed();
    while ((seen & (exclusive | waits)) == 0)
      // SYNC: shared-lock. Acquire: what its exclusive holders before have written.
      if (state.cas_acquire(seen, seen + 1)) return true;
    return false;
  }

  /// Takes the lock exclusively. Returns false if any process holds it.
  bool try_exclusive() {
    std::uint64_t seen = state.load_relaxed();
    while ((seen & ~waits) == 0)
      // SYNC: shared-lock. Acquire: what every holder before has read is not changed too early, and what they
      // have written is seen. Others that wait set their bit again.
      if (state.cas_acquire(seen, exclusive)) return true;
    return false;
  }

  /// try_exclusive(), upgraded to a claim: after a failure no process takes the lock shared before the
  /// caller has it exclusively. The caller must therefore go on until it has it.
  bool upgrade_exclusive() {
    if (try_exclusive()) return true;
    state.or_relaxed(waits);
    return try_exclusive();
  }

  // The caller then wakes the waiting processes: FlowControl::wake_waiters(waiters).

  void release_shared() {
    // SYNC: shared-lock. Release: what we read and wrote before, for the next exclusive holder.
    state.add_release(~std::uint64_t{0});
  }
  void release_exclusive() {
    // SYNC: shared-lock. Release: what we wrote, for whoever holds it next. Subtracted, since others may set
    // their bit at any time.
    state.add_release(0ull - exclusive);
  }

  Atomic<std::uint64_t> state{0};
  Atomic<std::uint64_t> waiters{0};
};

} // namespace near::queue
