// Yields the processor to others that want it.
#include "transport/competition.h"

#include "base/atomic.h"
#include "os/clock.h"
#include "os/futex.h"
#include "transport/job_share.h"
#include "transport/long_turns.h"
#include "transport/registry.h"

#include <new>

namespace near::transport {

namespace {

/// Whether other programs have run recently. One thread at a time asks; the others use the last known answer.
bool others_run() {
  static JobShare* const share =
      new (std::nothrow) JobShare; // never destroyed: MPI may be called from static destructors
  static base::Atomic<std::uint32_t> asking{0}, known{0};
  if (share == nullptr) return false;
  if (asking.exchange_acquire(1) != 0) return known.load_relaxed() != 0; // SYNC: job-share
  known.store_relaxed(share->others_run() ? 1 : 0);
  asking.store_release(0); // SYNC: job-share
  return known.load_relaxed() != 0;
}

} // namespace

void record_yields(LongTurns& turns, std::uint64_t took_ns, std::uint64_t now) {
  if (took_ns >= LongTurns::long_ns && !others_run()) return;
  turns.yielded(took_ns, now);
}

bool processor_is_wanted() {
  const WaitSettings& self = wait_settings;
  return self.oversubscribed || (self.may_yield_to_learn && competition.exists());
}

bool yield_to_others() {
  if (!wait_settings.may_yield_to_learn || !competition.should_yield()) return false;
  const std::uint64_t before = os::monotonic_ns();
  os::yield();
  const std::uint64_t now = os::monotonic_ns();
  const bool existed = competition.exists();
  competition.yielded(now - before);
  if (!existed && competition.exists()) long_turns.competition_begins();
  if (wait_settings.may_sleep_at_once) record_yields(long_turns, now - before, now);
  return true;
}

} // namespace near::transport
