// A process sleeps on its doorbell, on descriptors, or for short times.
#include "transport/sleeping.h"
#include "os/descriptor.h"
#include "os/futex.h"
#include "transport/polling.h"

#include <algorithm>
#include <array>
#include <vector>

namespace near::transport {

namespace {

/// The words of the locks that threads of this process wait for. Never destroyed.
auto& awaited_locks = *new std::vector<base::Atomic<std::uint64_t>*>;

/// The last check before a sleep.
bool has_changed_or_arrived() {
  if (!Watch::exists()) return has_arrived();
  const EngineLock lock;
  return Watch::any_changed() || has_arrived();
}

/// Sleeps until the bell is raised, a message is there, or the time is over. The kernel waits either for a futex or for
/// descriptors: where a transport has one, this process sleeps on the descriptors, and checks its bell and its
/// messages every millisecond (WaitSettings::descriptor_sleep_ns).
void sleep(segment::Doorbell& bell, std::uint32_t rung, std::uint64_t timeout_ns) {
  std::array<int, 4> found{};
  const std::size_t count = descriptors(found);
  if (count == 0) {
    DoorbellCalls::sleep(bell.sleeping, bell.bell, rung, wait_settings.fences, timeout_ns,
                         has_changed_or_arrived);
    return;
  }
  const std::uint64_t slice_ns = wait_settings.descriptor_sleep_ns;
  for (std::uint64_t slept = 0; slept < timeout_ns && DoorbellCalls::rung(bell.bell) == rung;
       slept += slice_ns)
    if (has_changed_or_arrived() || os::wait_until_readable(std::span(found).first(count), slice_ns)) return;
}

/// How long to sleep where a transport is silent: 1/16 of the time for which nothing has come, so that what arrives is
/// noticed soon in proportion, at most 1 ms, which costs less than 1% of a processor.
std::uint64_t nap_ns(std::uint64_t quiet_ns) {
  constexpr std::uint64_t longest = 1'000'000;
  return std::min(quiet_ns / 16, longest);
}

} // namespace

segment::Doorbell& own_doorbell() {
  static segment::Doorbell unheard{}; // without a node transport, no process rings
  return wait_settings.doorbell != nullptr ? *wait_settings.doorbell : unheard;
}

bool needs_announcements() { return !awaited_locks.empty() || waits_for_flow_control(); }

[[gnu::cold]] void register_as_waiter() {
  const std::uint64_t us = std::uint64_t{1} << memory::space().row % 64;
  register_with_transports();
  for (auto* waiters : awaited_locks) FlowControlCalls::add_waiter(*waiters, us);
  FlowControlCalls::before_recheck(wait_settings.fences);
}

void sleep_until_rung(segment::Doorbell& bell, std::uint32_t rung, std::uint64_t sleep_ns,
                      std::uint64_t quiet_ns) {
  if (!any_is_silent()) {
    sleep(bell, rung, sleep_ns);
    return;
  }
  const os::PunctualSleep punctual;
  sleep(bell, rung, std::min(sleep_ns, nap_ns(quiet_ns)));
}

AwaitedLock::AwaitedLock(base::Atomic<std::uint64_t>& waiters) : waiters_(waiters) {
  awaited_locks.push_back(&waiters);
}
AwaitedLock::~AwaitedLock() {
  awaited_locks.erase(std::find(awaited_locks.begin(), awaited_locks.end(), &waiters_));
}

void lock_was_left(base::Atomic<std::uint64_t>& waiters) {
  FlowControlCalls::wake_waiters(waiters, wait_settings.fences, raise_bells);
}

} // namespace near::transport
