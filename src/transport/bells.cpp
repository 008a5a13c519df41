// The doorbells of processes, on the kernel's futexes and barriers.
#include "os/futex.h"
#include "transport/doorbell.h"
#include "transport/registry.h"

#include <bit>

namespace near::transport {

void DoorbellSystem::wait(std::uint32_t* word, std::uint32_t expected, std::uint64_t timeout_ns) {
  os::futex_wait(word, expected, timeout_ns);
}
void DoorbellSystem::wake(std::uint32_t* word) { os::futex_wake_all(word); }
void DoorbellSystem::barrier_all() { os::barrier_all_registered(); }

[[gnu::cold]] void raise_bells(std::uint64_t bits) {
  const memory::Space& self = memory::space();
  // Includes processes that this one has not mapped. The processes with which the job began are all there; others may join.
  for (; bits != 0; bits &= bits - 1)
    for (std::uint32_t row = std::countr_zero(bits); row < self.segment.rows(); row += 64)
      if (row < self.job_size || self.segment.phase_of(row) == segment::Phase::ready)
        DoorbellCalls::announce(self.segment.control(row).doorbell.bell);
}

} // namespace near::transport
