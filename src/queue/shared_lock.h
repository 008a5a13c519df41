// A shared and exclusive lock in shared memory. MPI_Win_lock takes it at the target, and it keeps concurrent
// accumulates from interfering in an element. See doc/queue/shared_lock.md.
//
//   state     bit 63: held exclusively; bit 62: a process waits for that; lower bits: how many hold it shared
//   waiters   processes that sleep until the lock is released (queue/flow_control.h)
//
// A process that waits for the exclusive lock keeps others from taking the lock shared, so that a stream of
// shared holders cannot delay it for ever. There is no other fairness. The lock does not record its holders. If a
// holder dies, the lock stays held, but the launcher ends the job, so no process waits for ever.
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
      // SYNC: shared-lock. Acquire: we see what earlier exclusive holders have written.
      if (state.cas_acquire(seen, seen + 1)) return true;
    return false;
  }

  /// Takes the lock exclusively. Returns false if any process holds it.
  bool try_exclusive() {
    std::uint64_t seen = state.load_relaxed();
    while ((seen & ~waits) == 0)
      // SYNC: shared-lock. Acquire: our stores come after the reads of all earlier holders, and we see their
      // writes. Processes that wait set their bit again.
      if (state.cas_acquire(seen, exclusive)) return true;
    return false;
  }

  /// Like try_exclusive(), but after a failure no process can take the lock shared until the caller has held
  /// it exclusively. So the caller must try again until it gets the lock.
  bool upgrade_exclusive() {
    if (try_exclusive()) return true;
    state.or_relaxed(waits);
    return try_exclusive();
  }

  // The caller then wakes the processes that wait: FlowControl::wake_waiters(waiters).

  void release_shared() {
    // SYNC: shared-lock. Release: our reads and writes come before those of the next exclusive holder.
    state.add_release(~std::uint64_t{0});
  }
  void release_exclusive() {
    // SYNC: shared-lock. Release: our writes come before the reads of the next holder. Subtracts the bit,
    // since others may set theirs at any time.
    state.add_release(0ull - exclusive);
  }

  Atomic<std::uint64_t> state{0};
  Atomic<std::uint64_t> waiters{0};
};

} // namespace near::queue
