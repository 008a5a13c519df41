// A process sleeps on its doorbell, on descriptors, or for short times.
#include "transport/sleeping.h"
#include "os/descriptor.h"
#include "os/futex.h"
#include "transport/long_turns.h"
#include "transport/polling.h"
#include "transport/spin_time.h"

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

/// Sleeps until the bell is raised or the time is over.
void sleep_on_bell(segment::Doorbell& bell, std::uint32_t rung, std::uint64_t timeout_ns) {
  DoorbellCalls::sleep(bell.sleeping, bell.bell, rung, wait_settings.fences, timeout_ns,
                       has_changed_or_arrived);
}

/// Sleeps until a descriptor is readable, the bell is raised, or the time is over. The kernel can wait for a futex or for
/// descriptors, but not for both, so this process checks its bell and its messages after each `slice_ns`.
void sleep_on_descriptors(std::span<const int> descriptors, segment::Doorbell& bell, std::uint32_t rung,
                          std::uint64_t timeout_ns, std::uint64_t slice_ns) {
  for (std::uint64_t slept = 0; slept < timeout_ns && DoorbellCalls::rung(bell.bell) == rung;
       slept += slice_ns)
    if (has_changed_or_arrived() ||
        os::wait_until_readable(descriptors, std::min(slice_ns, timeout_ns - slept)))
      return;
}

/// Even the shortest nap takes longer than falling asleep and waking up.
constexpr std::uint64_t shortest_nap_ns = 20'000;

/// Returns how long to sleep if nothing reports arrivals: 1/16 of the time for which nothing has come, so that the delay stays in
/// proportion, and at most 1 ms, which costs less than 1% of a processor.
std::uint64_t nap_ns(std::uint64_t quiet_ns) {
  constexpr std::uint64_t longest = 1'000'000;
  return std::clamp(quiet_ns / 16, shortest_nap_ns, longest);
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
  const auto known = std::span(found).first(descriptors(found));
  if (any_is_silent()) {
    const os::PunctualSleep punctual;
    sleep_on_bell(bell, rung, std::min(sleep_ns, nap_ns(quiet_ns)));
  } else if (known.empty()) {
    sleep_on_bell(bell, rung, sleep_ns);
  } else if (long_turns.asleep()) {
    // The other processes of this machine, to which this one would have yielded, do not wake it.
    const std::uint64_t slice_ns = nap_ns(quiet_ns);
    sleep_on_descriptors(known, bell, rung, slice_ns, slice_ns);
  } else {
    sleep_on_descriptors(known, bell, rung, sleep_ns, wait_settings.descriptor_sleep_ns);
  }
}

void learn_from_sleep(std::uint64_t quiet_ns, bool was_rung) {
  static SpinTime spin_time;
  WaitSettings& self = wait_settings;
  if (!self.may_sleep_at_once || self.oversubscribed || self.spin_ns == 0 || long_turns.asleep()) return;
  self.spin_ns = spin_time.after_sleep(self.spin_ns, quiet_ns, was_rung);
}

void nap() {
  const os::PunctualSleep punctual;
  std::uint32_t never = 0;
  os::futex_wait(&never, 0, shortest_nap_ns);
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
