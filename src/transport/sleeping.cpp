// A process sleeps on its doorbell, on descriptors, or for short times.
#include "transport/sleeping.h"
#include "os/descriptor.h"
#include "os/futex.h"
#include "transport/long_turns.h"
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

/// Sleeps until the bell is raised, or the time is over.
void sleep_on_bell(segment::Doorbell& bell, std::uint32_t rung, std::uint64_t timeout_ns) {
  DoorbellCalls::sleep(bell.sleeping, bell.bell, rung, wait_settings.fences, timeout_ns,
                       has_changed_or_arrived);
}

/// Sleeps until a descriptor is readable, the bell is raised, or the time is over. The kernel waits either for a futex or for
/// descriptors, so this process checks its bell and its messages every millisecond (WaitSettings::descriptor_sleep_ns).
void sleep_on_descriptors(std::span<const int> descriptors, segment::Doorbell& bell, std::uint32_t rung,
                          std::uint64_t timeout_ns) {
  const std::uint64_t slice_ns = wait_settings.descriptor_sleep_ns;
  for (std::uint64_t slept = 0; slept < timeout_ns && DoorbellCalls::rung(bell.bell) == rung;
       slept += slice_ns)
    if (has_changed_or_arrived() || os::wait_until_readable(descriptors, slice_ns)) return;
}

constexpr std::uint64_t shortest_nap_ns = 20'000, longest_nap_ns = 1'000'000;

/// Sleeps on the bell for 1/16 of the time for which nothing has come, so that what arrives elsewhere is noticed soon in
/// proportion; at least for longer than it takes to fall asleep and wake up, and at most for 1 ms, which costs less than 1% of a processor.
void nap(segment::Doorbell& bell, std::uint32_t rung, std::uint64_t quiet_ns) {
  const os::PunctualSleep punctual;
  sleep_on_bell(bell, rung, std::clamp(quiet_ns / 16, shortest_nap_ns, longest_nap_ns));
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
  std::array<int, 4> found{};
  const auto descriptors_there = std::span(found).first(descriptors(found));
  // Processes of this machine do not wake one that sleeps on descriptors. So one that sleeps instead of yielding to them naps first.
  if (any_is_silent() ||
      (!descriptors_there.empty() && long_turns.asleep() && quiet_ns < 16 * longest_nap_ns))
    nap(bell, rung, quiet_ns);
  else if (descriptors_there.empty())
    sleep_on_bell(bell, rung, sleep_ns);
  else
    sleep_on_descriptors(descriptors_there, bell, rung, sleep_ns);
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
