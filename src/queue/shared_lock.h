// A lock in shared memory that many may hold together or one alone: what MPI_Win_lock takes at its target,
// and what keeps the elements of concurrent accumulates whole. See doc/queue/shared_lock.md.
//
//   state    bit 63: held alone; bit 62: somebody waits to hold it alone; below: how many hold it together
//   waiters   processes that sleep until the lock is released (queue/flow_control.h)
//
// Who waits to hold it alone keeps others from coming together before it, so a stream of them does not make
// it wait for ever. There is no order beyond that. The lock does not know its holders: when one dies, it
// stays held; the launcher ends the job, and nobody waits for it longer than that.
#pragma once

#include "base/atomic.h"

#include <cstdint>

namespace near::queue {

template <class Atomics = base::Hardware>
class SharedLock {
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;
  static constexpr std::uint64_t alone = 1ull << 63, waits = 1ull << 62;

public:
  /// False when somebody holds it alone, or waits for that.
  bool try_together() {
    std::uint64_t seen = state.load_relaxed();
    while ((seen & (alone | waits)) == 0)
      // SYNC: shared-lock. Acquire: what those who held it alone before have written.
      if (state.cas_acquire(seen, seen + 1)) return true;
    return false;
  }

  /// False when anybody holds it.
  bool try_alone() {
    std::uint64_t seen = state.load_relaxed();
    while ((seen & ~waits) == 0)
      // SYNC: shared-lock. Acquire: what every holder before has read is not changed too early, and what they
      // have written is seen. Others who wait set their bit anew.
      if (state.cas_acquire(seen, alone)) return true;
    return false;
  }

  /// As try_alone; when it fails, nobody comes together before the caller has it. The caller must not give
  /// up.
  bool insist_alone() {
    if (try_alone()) return true;
    state.or_relaxed(waits);
    return try_alone();
  }

  // The caller then wakes the waiting processes: FlowControl::wake_waiters(waiters).

  void leave_together() {
    // SYNC: shared-lock. Release: what we read and wrote before, for who holds it alone next.
    state.add_release(~std::uint64_t{0});
  }
  void leave_alone() {
    // SYNC: shared-lock. Release: what we wrote, for whoever holds it next. Subtracted, since others may set
    // their bit at any time.
    state.add_release(0ull - alone);
  }

  Atomic<std::uint64_t> state{0};
  Atomic<std::uint64_t> waiters{0};
};

} // namespace near::queue
