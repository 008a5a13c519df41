// Yields to others that want a thread's processor.
#include "transport/competition.h"
#include "os/clock.h"
#include "os/futex.h"
#include "transport/registry.h"

namespace near::transport {

bool processor_is_wanted() {
  const WaitSettings& self = wait_settings;
  return self.oversubscribed || (self.may_yield_to_learn && competition.exists());
}

bool yield_to_others() {
  if (!wait_settings.may_yield_to_learn || !competition.should_yield()) return false;
  const std::uint64_t before = os::monotonic_ns();
  os::yield();
  competition.yielded(os::monotonic_ns() - before);
  return true;
}

} // namespace near::transport
