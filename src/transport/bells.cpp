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
  for (; bits != 0; bits &= bits - 1)
    for (std::uint32_t rank = std::countr_zero(bits); rank < self.job_size; rank += 64)
      DoorbellCalls::announce(
          self.segment.control(rank).doorbell.bell); // even if this process has not mapped it
}

} // namespace near::transport
