// The state of the ranks: polls the rank table, processes the endings of child processes, and determines
// outcomes.
#include "launch/supervisor.h"

#include "boot/boot.h"
#include "launch/rank_table.h"
#include "os/clock.h"
#include "os/futex.h"
#include "queue/doorbell.h"

#include <algorithm>
#include <utility>

namespace near::launch {
namespace {

// How often the rank table is polled, in case a process could not signal (another process namespace).
constexpr std::uint64_t poll_interval_ns = 500'000'000;
// How long a process that called MPI_Abort may take to flush its output before SIGTERM.
constexpr std::uint64_t abort_grace_ns = 200'000'000;
// How long a process that was left behind may take to call MPI_Init if no other rank has called it, which
// would show that the job is an MPI program. After that, it counts as a background process, for which nobody
// waits.
constexpr std::uint64_t left_grace_ns = 2'000'000'000;
// After a request to end has ended all ranks, remaining processes get SIGKILL after this time.
constexpr std::uint64_t until_rest_is_killed_ns = 400'000'000;
// How long the end of a rank by Ctrl-C waits for mpiexec's own signal, which explains it.
constexpr std::uint64_t until_interrupted_ns = 100'000'000;
// After a rank has failed following MPI_Finalize: by then the others must have called it as well.
constexpr std::uint64_t until_all_have_finalized_ns = 200'000'000;
// After that mpiexec reports that the others continue.
constexpr std::uint64_t until_late_is_said_ns = 800'000'000;
// How long to wait when no process is left although the rank table says that some ranks continue.
constexpr std::uint64_t lost_grace_ns = 500'000'000;
// How many endings of children that matched no rank are remembered: that of the MPI process of a wrapper
// for each rank, and those of some background processes that end between it and the wrapper.
constexpr std::size_t unmatched_per_rank = 2;
constexpr std::size_t most_other_unmatched = 64;

struct Waker {
  static void wake(std::uint32_t* word) { os::futex_wake_all(word); }
};
using Doorbell = queue::DoorbellProtocol<base::Hardware, Waker>;

std::string short_name(const std::string& program) {
  auto slash = program.rfind('/');
  return slash == std::string::npos ? program : program.substr(slash + 1);
}

} // namespace

void Supervisor::poll_ranks() {
  if (state_ != State::draining) timers_.set(Timer::poll, os::monotonic_ns() + poll_interval_ns);
  for (unsigned rank = 0; rank < ranks_.size(); ++rank)
    if (!ranks_[rank].ended) poll_rank(rank);
  check_left_processes();
  check_missing_init();
  check_stall();
  check_held_input();
}

void Supervisor::poll_rank(unsigned rank) {
  auto& at = ranks_[rank];
  if (at.pid == 0 || !has_region(rank)) return;
  if (!at.ended && at.mpi_process == 0 && !at.mpi_process_gone) find_mpi_process(rank);
  if (!at.aborting && !at.ended && abort_of(segment_.entry(rank)) != segment::Abort::none) {
    at.aborting = true;
    decide(outcome_of(rank, {at.pid, 0}), abort_grace_ns);
    if (state_ == State::terminating && outcome_.reason == Reason::interrupted) {
      // The process has done its work; the others need not be waited for.
      kill_all(SIGTERM);
      timers_.advance(Timer::kill, os::monotonic_ns() + until_rest_is_killed_ns);
    }
  }
}

void Supervisor::collect_endings() {
  os::Ending ending;
  while (os::reap(ending, no_children_)) endings_.push_back(ending);
}

void Supervisor::reap() {
  const unsigned was_living = living_;
  collect_endings();
  while (!endings_.empty()) {
    os::Ending ending = endings_.front();
    endings_.pop_front();
    bool of_rank = false;
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
      if (!is_end_of(rank, ending.pid)) continue;
      of_rank = true;
      rank_ended(rank, ending);
    }
    if (of_rank) continue;
    unmatched_children_.push_back(ending);
    if (unmatched_children_.size() > unmatched_per_rank * ranks_.size() + most_other_unmatched)
      unmatched_children_.pop_front();
  }
  check_left_processes();
  no_children_ = no_children_ || (out_of_reach_ && living_ == 0);
  if (living_ > 0 && living_ < ranks_.size() && !starting_) check_missing_init();
  if (living_ == 0 && state_ == State::running && !starting_) {
    if (late_.reason != Reason::none) {
      decide(std::move(late_));
    } else {
      enter(State::ending);
      if (!no_children_) wait_for_left_processes();
    }
  }
  if (state_ == State::terminating && was_living > 0 && living_ == 0)
    timers_.advance(Timer::kill, os::monotonic_ns() + until_rest_is_killed_ns);
  if (no_children_ && state_ != State::running && state_ != State::draining) enter(State::draining);
}

/// Whether the end of this process is the end of the rank: it is the process that was started, or the MPI
/// process once the started one has ended successfully.
bool Supervisor::is_end_of(unsigned rank, os::Pid pid) {
  const auto& at = ranks_[rank];
  if (at.ended) return false;
  if (at.awaits == Rank::Awaits::started) return at.pid == pid;
  if (at.mpi_process != 0) return at.mpi_process == pid;
  // The process may have started and ended between two polls.
  return has_region(rank) && at.number == pid;
}

void Supervisor::rank_ended(unsigned rank, os::Ending ending) {
  auto& at = ranks_[rank];
  poll_rank(rank);
  // A shell ends at once when asked to, while its program may still be saving its work.
  const bool asked = state_ == State::terminating && outcome_.reason == Reason::interrupted;
  bool may_have_left =
      (ending.raw == 0 || asked) && ending.pid == at.pid && at.awaits == Rank::Awaits::started;
  if (may_have_left && phase_of(rank) == segment::Phase::launched && has_left_processes(rank)) {
    at.awaits = Rank::Awaits::left;
    timers_.set(Timer::left, os::monotonic_ns() + left_grace_ns, rank);
    return;
  }
  if (may_have_left && has_region(rank)) {
    // If the process left its MPI process behind, the end of that one counts, whether it is still to come or
    // came first. A process that ended before its wrapper became our child when the wrapper ended: it can be
    // reaped now, unless the wrapper had waited for it.
    collect_endings();
    if (const auto* seen = known_ending_of_mpi_process(rank)) {
      ending = *seen;
    } else if (at.mpi_process_watch >= 0 || watch_mpi_process(rank)) {
      at.awaits = Rank::Awaits::mpi_process;
      return;
    }
  }
  auto phase = phase_of(rank);
  at.ended = true;
  at.status = ending.status();
  --living_;
  if (!std::exchange(any_ended_, true))
    timers_.advance(Timer::foreign, os::monotonic_ns()); // before more are gone
  Outcome outcome = outcome_of(rank, ending);
  if (phase == segment::Phase::ready || (outcome.reason != Reason::none && !outcome.late))
    mark_dead(rank, ending.raw);
  if (outcome.late && !decided()) {
    if (late_.reason == Reason::none)
      timers_.set(Timer::late, os::monotonic_ns() + until_all_have_finalized_ns);
    if (weight(outcome) > weight(late_)) late_ = std::move(outcome);
  } else if (outcome.reason != Reason::none) {
    const int signal = ending.signal();
    const bool by_terminal = outcome.reason == Reason::signalled && description_.terminal_input &&
                             (signal == SIGINT || signal == SIGQUIT);
    decide(std::move(outcome), by_terminal ? until_interrupted_ns : 0);
  }
  // The rank that called MPI_Abort has flushed its output, so there is no reason to wait longer.
  if (at.aborting) timers_.advance(Timer::terminate, os::monotonic_ns());
}

/// Ends the job after a failure that followed MPI_Finalize, unless all other ranks have called that, too: they may still write
/// results, but no rank waits for the one that has failed.
void Supervisor::decide_on_late_failure() {
  if (late_.reason == Reason::none || state_ != State::running) return;
  for (unsigned rank = 0; rank < ranks_.size(); ++rank)
    if (!ranks_[rank].ended && phase_of(rank) != segment::Phase::finalized) return decide(std::move(late_));
  timers_.set(Timer::linger, os::monotonic_ns() + until_late_is_said_ns);
}

/// The phase of the rank. The value in the rank table is believed only if it can follow the previous one.
segment::Phase Supervisor::phase_of(unsigned rank) {
  using segment::Phase;
  auto& at = ranks_[rank];
  // SYNC: rank-phase. Acquire: what the process wrote before its phase (its region, its last messages) is
  // visible.
  auto told = static_cast<Phase>(segment_.entry(rank).phase.load_acquire());
  bool ready = told == Phase::ready && at.phase == Phase::launched;
  bool finalized = told == Phase::finalized && (at.phase == Phase::launched || at.phase == Phase::ready);
  if (!ready && !finalized) return at.phase;
  if (at.phase == Phase::launched) {
    auto number = static_cast<os::Pid>(base::load_once(segment_.control(rank).pid));
    at.number = number > 0 ? number : at.pid;
  }
  return at.phase = told;
}

/// Whether the rank has a region that may be read.
bool Supervisor::has_region(unsigned rank) {
  auto phase = phase_of(rank);
  return (phase == segment::Phase::dead ? ranks_[rank].died_in : phase) != segment::Phase::launched;
}

Outcome Supervisor::outcome_of(unsigned rank, const os::Ending& ending) {
  const auto& job = description_.job;
  Outcome outcome;
  outcome.row = rank;
  outcome.rank = job.rank_of(rank);
  if (job.part.machines > 1) outcome.machine = os::machine_name();
  outcome.ending = ending;
  outcome.program = short_name(job.command.applications[job.application_of[rank]].arguments[0]);
  outcome.status = ending.status();
  outcome.was_in_mpi = has_region(rank);
  if (outcome.was_in_mpi) outcome.activity = segment::activity_of(segment_, rank);
  auto phase = phase_of(rank);
  auto& entry = segment_.entry(rank);
  if (auto how = abort_of(entry); how != segment::Abort::none) {
    outcome.reason = Reason::aborted;
    outcome.told = how == segment::Abort::failed;
    outcome.abort_code = entry.abort_code.load_relaxed();
    outcome.status = boot::exit_status_of_abort(outcome.abort_code);
  } else if (ending.by_signal()) {
    outcome.reason = Reason::signalled;
    auto now = os::read_memory_kills();
    outcome.kills = {now.group - kills_before_.group, now.machine - kills_before_.machine};
  } else if (ending.status() != 0) {
    outcome.reason = Reason::failed;
    // It is not known here whether ranks on other machines have called it.
    outcome.late = phase == segment::Phase::finalized && job.part.machines == 1;
  } else if (phase == segment::Phase::ready) {
    outcome.reason = Reason::unfinalized;
    outcome.status = 1;
  }
  return outcome;
}

void Supervisor::mark_dead(unsigned rank, int raw_status) {
  auto& at = ranks_[rank];
  at.died_in = phase_of(rank);
  at.phase = segment::Phase::dead;
  auto& entry = segment_.entry(rank);
  entry.exit_status.store_relaxed(static_cast<std::uint32_t>(raw_status));
  entry.died_in.store_relaxed(static_cast<std::uint32_t>(at.died_in));
  store_phase(segment_, rank, segment::Phase::dead);
  auto& header = segment_.header();
  os::futex_wake_all(header.ready.address());
  for (unsigned other = 0; other < ranks_.size(); ++other) {
    if (other == rank || phase_of(other) != segment::Phase::ready) continue;
    Doorbell::announce(segment_.control(other).doorbell.bell);
  }
}

void Supervisor::check_missing_init() {
  if (decided()) return;
  unsigned without = 0;
  bool waiting = false, gone = false;
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    auto phase = phase_of(rank);
    const bool in_mpi = phase == segment::Phase::ready || table_.is_in_fence(rank);
    waiting = waiting || (in_mpi && !ranks_[rank].ended);
    if (!gone && ranks_[rank].ended && phase == segment::Phase::launched) {
      gone = true;
      without = rank;
    }
  }
  if (!waiting || !gone) return;
  Outcome outcome = outcome_of(without, {ranks_[without].pid, 0});
  outcome.reason = Reason::no_init;
  outcome.status = 1;
  decide(std::move(outcome));
}

/// If no descendant process is left, every rank has ended, whatever the segment says about MPI processes
/// that wrappers have started.
void Supervisor::check_lost_ranks(std::uint64_t now_ns) {
  if (!no_children_ || living_ == 0 || state_ != State::running)
    timers_.cancel(Timer::lost);
  else if (!timers_.is_set(Timer::lost))
    timers_.set(Timer::lost, now_ns + lost_grace_ns);
}

void Supervisor::decide_on_lost_ranks() {
  auto lost = std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; });
  auto rank = static_cast<unsigned>(lost - ranks_.begin());
  Outcome outcome = outcome_of(rank, {lost->pid, 0});
  outcome.reason = Reason::vanished;
  outcome.text = "has ended too; its exit status is unknown";
  outcome.status = 1;
  decide(std::move(outcome));
}

} // namespace near::launch
