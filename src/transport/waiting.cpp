// Waiting: a thread polls for a while, then sleeps on this rank's doorbell.
#include "os/clock.h"
#include "os/futex.h"
#include "transport/competition.h"
#include "transport/lock_pause.h"
#include "transport/long_turns.h"
#include "transport/polling.h"
#include "transport/registry.h"
#include "transport/sleeping.h"

#include <algorithm>
#include <utility>

namespace near::transport {

WaitSettings wait_settings;

namespace {

/// How long a wait in which nothing comes polls before it sleeps, in nanoseconds. With more ranks than processors, what is under
/// way does not count: another rank needs the processor, perhaps to make it move.
std::uint64_t patience_ns() {
  const WaitSettings& self = wait_settings;
  if (self.oversubscribed || self.spin_ns == 0) return self.spin_ns;
  return std::max(self.spin_ns, polling_ns());
}

/// How many pauses a wait makes between two polls: one while something may follow soon; 16 after that, and always if other threads may
/// need the engine lock.
int pauses_after(std::uint64_t quiet_ns) {
  return quiet_ns < 5'000 && !EngineLock::threads_allowed() ? 1 : 16;
}

/// With more ranks than processors: the number of polls in a wait, each followed by a yield, before the process
/// prepares to sleep.
constexpr int turns_of_a_wait = 16;

void count_sleep() {
  auto* count = wait_settings.sleeps;
  if (count != nullptr) count->store_relaxed(count->load_relaxed() + 1);
}

/// While a wait lasts, shows tools the time at which it began.
class WaitTime {
public:
  explicit WaitTime(std::uint64_t since) : line_(own_state_line()) { line_.since_ns.store_relaxed(since); }
  ~WaitTime() { line_.since_ns.store_relaxed(0); }
  WaitTime(const WaitTime&) = delete;
  WaitTime& operator=(const WaitTime&) = delete;

private:
  segment::StateLine& line_;
};

// Threads that wait at the same time (MPI_THREAD_MULTIPLE): after a few polls one of them becomes the leader.
// It keeps polling for messages, and sleeps on the doorbell. The others are followers: each sleeps on a word
// of its own. After progress the leader finds the followers whose conditions may be true, and wakes only
// those. So a message wakes the thread that waits for it, and no other thread takes the engine lock.
//
// No wake-up is lost, because everything but the sleep itself happens under the engine lock:
// - A follower clears its word, tests its own condition, and sees that there is a leader; then it releases
//   the lock to sleep. Whatever makes its condition true after that does so under the lock, and is followed
//   by tell_followers(), which sets the word: so futex_wait() ends, or returns at once.
// - However the leader's wait ends, ~Lead runs. It wakes a sleeping follower if there is one; a follower that
//   is awake sees before it sleeps that there is no leader. It becomes the leader, or its wait ends and
//   ~Follower wakes the next one.
// - Before it sleeps, the leader registers for free slots on behalf of all. A follower that begins to wait later
//   registers itself. The answer rings the doorbell, where the leader sleeps.
// - A thread that makes progress without being the leader calls wake_waiting_threads(), which tells followers
//   and leader.
// Like a thread that waits alone, the leader notices events without an announcement (time that passes, a peer's
// death) after each of its sleeps.
//
// A condition may take things, or fail with a text that belongs to its thread, so only its own thread tests
// it. The leader calls `check`, which says whether the condition is worth testing; a thread without `check` is
// woken after every event. Nothing here is a cancellation point. A child made by fork() never gets here,
// since MPI refuses its calls.
class Follower;

/// The threads that wait. All of this is under the engine lock. The leader is identified by its thread, because a
/// callback of the leader may wait again.
struct WaitingThreads {
  std::uint32_t count = 0;   ///< leader and followers
  std::uintptr_t leader = 0; ///< 0: no thread waits, or an awake follower will see it
  int leader_processor = -1; ///< where the leader last ran
  bool leader_sleeps = false;
  std::uint32_t events = 0; ///< calls of wake_waiting_threads(): the leader polls again before it sleeps
  Follower* first = nullptr;
  Follower* last = nullptr;
};
WaitingThreads waiting;

class Follower {
public:
  Follower(bool (*check)(void*), void* argument)
      : check_(check), argument_(argument), previous_(waiting.last) {
    (previous_ != nullptr ? previous_->next_ : waiting.first) = this;
    waiting.last = this;
    ++waiting.count;
  }
  ~Follower() {
    --waiting.count;
    (previous_ != nullptr ? previous_->next_ : waiting.first) = next_;
    (next_ != nullptr ? next_->previous_ : waiting.last) = previous_;
    if (waiting.leader == 0) wake_one();
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// A wake() after this ends the next sleep().
  void listen() { woken_.store_relaxed(0); }
  void sleep() {
    asleep_ = true;
    processor_ = os::current_processor();
    {
      LockPause unlocked;
      os::futex_wait(woken_.address(), 0, sleep_limit_ns);
    }
    asleep_ = false;
  }
  /// Wakes the sleeping follower that has waited longest.
  static void wake_one() {
    for (Follower* each = waiting.first; each != nullptr; each = each->next_)
      if (each->asleep_) return each->wake();
  }
  /// Wakes the followers whose conditions may be true. Returns whether one of them will probably run on this thread's
  /// processor.
  [[gnu::noinline]] static bool wake_those_that_may_be_done() {
    bool here = false;
    for (Follower* each = waiting.first; each != nullptr; each = each->next_)
      if (each->woken_.load_relaxed() == 0 && (each->check_ == nullptr || each->check_(each->argument_))) {
        here = here || (each->asleep_ && each->processor_ == os::current_processor());
        each->wake();
      }
    return here;
  }

private:
  void wake() {
    woken_.store_relaxed(1);
    if (!asleep_) return;
    asleep_ = false; // the follower takes the lock as soon as it can
    os::futex_wake_all(woken_.address());
  }

  bool (*check_)(void*);
  void* argument_;
  Follower *previous_, *next_ = nullptr;
  base::Atomic<std::uint32_t> woken_{0}; ///< changed under the engine lock, which orders all else
  bool asleep_ = false;
  int processor_ = -1; ///< where the follower fell asleep
};

/// Wakes the followers that may be done. Returns whether one of them needs this thread's processor.
bool tell_followers() { return waiting.first != nullptr && Follower::wake_those_that_may_be_done(); }

/// Waits while another thread leads. Returns true if done() was true, false if this thread has become the
/// leader.
bool follow(bool (*done)(void*), void* argument, bool (*check)(void*)) {
  const std::uint64_t since = os::monotonic_ns();
  const WaitTime time(since);
  LeaveOutIfLong long_wait(since);
  Follower self(check, argument);
  for (;;) {
    self.listen();
    if (done(argument)) return true;
    if (waiting.leader_sleeps && needs_announcements()) {
      register_as_waiter();
      if (progress()) wake_waiting_threads();
      if (done(argument)) return true; // taking a lock moves no message
    }
    if (waiting.leader == 0) break;
    self.sleep();
    long_wait.lasts_until(os::monotonic_ns());
  }
  waiting.leader = this_thread();
  return false;
}

/// This thread is the leader as long as this object lives. `nested`: it is already the leader and waits
/// within a callback, so it remains the leader afterwards.
class Lead {
public:
  explicit Lead(bool nested) : nested_(nested) {
    waiting.leader = this_thread();
    waiting.leader_processor = os::current_processor();
    ++waiting.count;
  }
  ~Lead() {
    --waiting.count;
    if (nested_) return;
    waiting.leader = 0;
    Follower::wake_one();
  }
  Lead(const Lead&) = delete;
  Lead& operator=(const Lead&) = delete;

private:
  bool nested_;
};

} // namespace

void wake_waiting_threads() {
  if (waiting.count == 0) [[likely]]
    return;
  tell_followers();
  ++waiting.events;
  if (waiting.leader_sleeps) {
    auto& doorbell = own_doorbell();
    DoorbellCalls::ring(doorbell.sleeping, doorbell.bell);
  }
}

void give_way() {
  LockPause unlocked;
  os::yield();
}

bool give_way_between_polls(bool first) {
  if (!wait_settings.may_sleep_at_once) {
    give_way();
    return false;
  }
  static thread_local std::uint64_t since = 0; // when the polls began, or the time that was left out ended
  LongTurns& turns = long_turns_of_polls;
  const bool naps = first ? turns.begins_asleep(os::monotonic_ns) : turns.asleep();
  if (naps) count_sleep();
  LockPause unlocked;
  const std::uint64_t before = os::monotonic_ns();
  naps ? nap() : os::yield();
  const std::uint64_t now = os::monotonic_ns();
  if (!naps) record_yields(turns, now - before, now);
  if (first) since = before;
  if (now - since > LongTurns::other_reasons_ns) {
    // Nothing comes, or it comes while this thread waits or another one polls; neither ends a wait of these polls.
    if (turns.asleep())
      turns.give_up();
    else
      turns.leave_out(since, now);
    since = now;
  }
  return naps;
}

namespace {

/// How many times as many polls a thread makes before it follows a leader that waits for this very processor. Sleeping until a
/// reply that is on its way arrives, and being woken for it, takes two thread switches.
constexpr int more_among_threads = 8;
/// If nothing has moved, only one in this many of the first polls tests the condition. The test also runs p2p's background work
/// (schedules and handed calls).
constexpr int polls_between_questions = 8;

/// Makes the first polls of a wait, before anything is set up for a longer one. Returns true if done() was true. Often
/// the reply is here before a clock could be read. With more ranks than processors the reply's sender may need this
/// processor, so this thread yields at once, a few times.
[[gnu::always_inline]] inline bool poll_for_a_while(bool (*done)(void*), void* argument) {
  const WaitSettings& self = wait_settings;
  const bool shares =
      self.oversubscribed || (self.may_yield_to_learn && (competition.exists() || long_turns.asleep()));
  const bool learns = shares && self.spin_ns != 0 && self.may_sleep_at_once;
  const bool sleeps_at_once = learns && long_turns.begins_asleep(os::monotonic_ns);
  const bool yields = self.oversubscribed && self.spin_ns != 0 && !sleeps_at_once;
  const bool yields_to_learn = self.may_yield_to_learn && self.spin_ns != 0 && !sleeps_at_once;
  int polls = sleeps_at_once ? 1 : self.oversubscribed ? turns_of_a_wait : fast_path.polls;
  if (!sleeps_at_once && waiting.leader != 0 && self.spin_ns != 0 &&
      waiting.leader_processor == os::current_processor())
    polls *= more_among_threads;
  std::uint64_t first_yield = 0;
  bool is_done = false;
  for (int poll = 0; poll < polls; ++poll) {
    bool moved = progress();
    if (moved) wake_waiting_threads();
    const bool asks =
        moved || self.oversubscribed || Watch::exists() || (poll + 1) % polls_between_questions == 0;
    is_done = asks && done(argument);
    if (is_done) break;
    if (yields) {
      if (learns && first_yield == 0) first_yield = os::monotonic_ns();
      LockPause unlocked;
      os::yield();
    } else if (yields_to_learn && competition.exists()) {
      LockPause unlocked;
      yield_to_others();
    } else {
      base::cpu_relax();
    }
  }
  if (first_yield != 0) {
    const std::uint64_t now = os::monotonic_ns();
    record_yields(long_turns, now - first_yield, now);
  }
  return is_done;
}

/// Polls for messages until done(argument) is true, and sleeps in between.
void poll_and_sleep(bool (*done)(void*), void* argument) {
  const WaitSettings& self = wait_settings;
  const std::uint64_t since = os::monotonic_ns();
  const WaitTime time(since);
  const auto first_spin = [&] { return long_turns.asleep() ? 0 : self.spin_ns; };
  std::uint64_t first_spin_ns = first_spin();
  LeaveOutIfLong long_wait(since);
  std::uint32_t noted = noted_progress;
  std::uint64_t quiet_since = since, spin_ns = first_spin_ns, sleep_ns = self.first_sleep_ns;
  for (;;) {
    auto& bell = own_doorbell();
    // Read this before the checks below: whatever they miss, and whatever is announced by a ring alone, ends the sleep.
    std::uint32_t rung = DoorbellCalls::rung(bell.bell);
    std::uint32_t events = waiting.events;
    if (done(argument)) return;
    bool moved = progress();
    moved |= std::exchange(noted, noted_progress) != noted_progress;
    const std::uint64_t polled = os::monotonic_ns();
    long_wait.lasts_until(polled);
    const std::uint64_t quiet_ns = polled - quiet_since;
    if (quiet_ns >= spin_ns && spin_ns == first_spin_ns && spin_ns != 0)
      spin_ns = patience_ns(); // asked once in a quiet time
    const bool spins = quiet_ns < spin_ns;
    if (!moved && !spins && needs_announcements()) {
      register_as_waiter();
      moved = progress();
      if (!moved && done(argument)) return; // taking a lock moves no message
      tell_followers();
    }
    if (moved) {
      // The kernel lets this thread continue for a while, although one that was woken needs its processor.
      if (tell_followers()) {
        if (done(argument)) return;
        give_way();
      }
      quiet_since = os::monotonic_ns();
      spin_ns = first_spin_ns = first_spin();
      sleep_ns = self.first_sleep_ns;
      continue;
    }
    if (Watch::exists() && Watch::any_changed()) tell_followers();
    if (waiting.first != nullptr) waiting.leader_processor = os::current_processor();
    std::uint64_t nap_after_ns = quiet_ns;
    const std::uint64_t sleeps_ns = std::min(sleep_ns, sleep_bound_ns);
    if (!spins) {
      if (waiting.events != events) continue;
      // While something is under way that only polls move, naps stay short.
      if (quiet_ns < polling_ns()) nap_after_ns = 0;
      waiting.leader_sleeps = true;
      count_sleep();
    }
    {
      LockPause unlocked;
      if (spins) {
        // With more ranks than processors, the process that we wait for may be runnable on this processor. A yield costs less
        // than a sleep with its barrier and wake-up, and ends like one when no other process wants the processor.
        if (self.oversubscribed) {
          os::yield();
          if (self.may_sleep_at_once) {
            const std::uint64_t now = os::monotonic_ns();
            record_yields(long_turns, now - polled, now);
            quiet_since += turn_of_rank_ns(now - polled);
          }
        } else if (!yield_to_others())
          for (int i = 0; i < pauses_after(quiet_ns); ++i) base::cpu_relax();
        continue;
      }
      sleep_until_rung(bell, rung, sleeps_ns, nap_after_ns);
    }
    sleep_ns = std::min(2 * sleep_ns, self.longest_sleep_ns);
    const std::uint64_t woke = os::monotonic_ns();
    const bool was_rung = DoorbellCalls::rung(bell.bell) != rung;
    learn_from_sleep(woke - quiet_since, was_rung);
    // The process that rang may send more. But rings for locks and packets that are given up go to all that wait for them.
    if (!self.oversubscribed && !needs_announcements() && was_rung) {
      quiet_since = woke;
      spin_ns = first_spin_ns = first_spin();
    }
    waiting.leader_sleeps = false;
    DoorbellCalls::awake(bell.sleeping); // no other thread sleeps on this doorbell
    tell_followers();                    // the ring may have been for one of them
  }
}

[[gnu::noinline]] void wait_among_threads(bool (*done)(void*), void* argument, bool (*check)(void*)) {
  const bool nested = waiting.leader == this_thread();
  if (waiting.leader != 0 && !nested && follow(done, argument, check)) return;
  const Lead lead(nested);
  poll_and_sleep(done, argument);
}

} // namespace

void wait_until(bool (*done)(void*), void* argument, bool (*check)(void*)) {
  if (done(argument) || poll_for_a_while(done, argument)) return;
  if (EngineLock::threads_allowed())
    wait_among_threads(done, argument, check);
  else
    poll_and_sleep(done, argument);
}

} // namespace near::transport
