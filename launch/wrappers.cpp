// Ranks whose MPI process is not the process that was started: a wrapper script started it, or left it
// behind.
#include "launch/supervisor.h"

#include "boot/boot.h"
#include "launch/keys.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/memory.h"

#include <algorithm>
#include <unistd.h>

namespace near::launch {
namespace {

// How long a wrapper may take to end, with a status, after its MPI process has ended.
constexpr std::uint64_t wrapper_grace_ns = 100'000'000;

} // namespace

/// How a wrapper's MPI process ended, if that is already known; otherwise nullptr.
const os::Ending* Supervisor::known_ending_of_mpi_process(unsigned rank) {
  const auto& at = ranks_[rank];
  if (!has_region(rank)) return nullptr;
  auto pid = at.mpi_process != 0 ? at.mpi_process : at.number;
  if (std::any_of(ranks_.begin(), ranks_.end(), [pid](const Rank& other) { return other.pid == pid; }))
    return nullptr;
  for (const auto* list : {&endings_, &unmatched_children_})
    for (auto seen = list->rbegin(); seen != list->rend(); ++seen)
      if (seen->pid == pid) return &*seen;
  // If the wrapper waited for the MPI process and ended successfully after that process called MPI_Finalize,
  // all is well.
  bool told = at.mpi_process_ending.pid != 0 && phase_of(rank) == segment::Phase::ready;
  return told ? &at.mpi_process_ending : nullptr;
}

// Finds the process that called MPI_Init if it is a descendant of the one that was started: then its end
// counts.
void Supervisor::find_mpi_process(unsigned rank) {
  auto& at = ranks_[rank];
  if (phase_of(rank) != segment::Phase::ready || at.number == at.pid) return;
  if (!os::processes_are_listed()) return; // only the end of the wrapper can be seen
  if (watch_mpi_process(rank) || phase_of(rank) != segment::Phase::ready) return;
  mpi_process_is_gone(rank); // it ended before it was found
  int watch = -1;
  if (!os::watch_process(at.number, watch).ok()) return;
  if (os::Ending ending; os::ending_of(at.number, watch, ending)) at.mpi_process_ending = ending;
  os::close_descriptor(watch);
}

/// Finds the running MPI process that the wrapper of the rank started, and watches it. Returns whether
/// there is one.
bool Supervisor::watch_mpi_process(unsigned rank) {
  auto& at = ranks_[rank];
  if (at.mpi_process != 0 || at.number == at.pid || !os::processes_are_listed()) return false;
  // By its ancestry, since the number may belong to another process namespace; among all descendants of the
  // supervisor if its wrapper has already gone.
  os::Pid found = os::find_descendant(at.pid, at.number);
  if (found == 0) {
    found = os::find_descendant(getpid(), at.number);
    for (const auto& other : ranks_)
      if (!other.ended && os::descends_from(found, other.pid)) found = 0;
  }
  if (found == 0 || !os::watch_process(found, at.mpi_process_watch).ok()) return false;
  at.mpi_process = found;
  (void)poller_.add(at.mpi_process_watch, key_mpi_process + rank);
  return true;
}

void Supervisor::mpi_process_ended(unsigned rank) {
  auto& at = ranks_[rank];
  os::Ending ending;
  if (os::ending_of(at.mpi_process, at.mpi_process_watch, ending)) at.mpi_process_ending = ending;
  poller_.remove(at.mpi_process_watch);
  os::close_descriptor(at.mpi_process_watch);
  at.mpi_process_watch = -1;
  reap(); // it may be our child by now
  if (at.ended) return;
  if (phase_of(rank) == segment::Phase::ready) {
    mpi_process_is_gone(rank);
  } else if (at.awaits == Rank::Awaits::mpi_process) {
    // Its parent was neither the wrapper nor this process: nobody can find out its status any more.
    at.ended = true;
    --living_;
    reap();
  }
}

/// Gives the wrapper time to end with a status of its own.
void Supervisor::mpi_process_is_gone(unsigned rank) {
  ranks_[rank].mpi_process_gone = true;
  timers_.set(Timer::wrapper, os::monotonic_ns() + wrapper_grace_ns, rank);
}

void Supervisor::wrapper_out_of_time(unsigned rank) {
  const auto& at = ranks_[rank];
  if (at.ended || decided() || state_ == State::draining) return;
  if (const auto* seen = known_ending_of_mpi_process(rank)) {
    decide(outcome_of(rank, *seen));
    return;
  }
  Outcome outcome = outcome_of(rank, {at.number, 0});
  outcome.reason = Reason::vanished;
  outcome.text = at.awaits == Rank::Awaits::mpi_process
                     ? "had started an intermediate process, the only one that knows its status"
                     : "is still running";
  outcome.status = 1;
  decide(std::move(outcome));
}

bool Supervisor::has_left_processes(unsigned rank) const {
  auto marks = boot::marks_of(description_.front_end, description_.job.rank_of(rank));
  for (os::Pid pid : os::descendants_of(getpid()))
    if (os::started_with(pid, marks)) return true;
  return false;
}

void Supervisor::check_left_processes() {
  bool someone_is_ready = false;
  for (unsigned rank = 0; rank < ranks_.size(); ++rank)
    someone_is_ready = someone_is_ready || has_region(rank);
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    auto& at = ranks_[rank];
    if (at.awaits != Rank::Awaits::left || at.ended || phase_of(rank) == segment::Phase::ready) continue;
    bool patient = someone_is_ready || timers_.is_set(Timer::left, rank);
    if (state_ == State::running && patient && has_left_processes(rank)) continue;
    // The MPI process may have started and ended since its phase was read.
    collect_endings();
    if (const auto* seen = known_ending_of_mpi_process(rank)) {
      rank_ended(rank, *seen);
      continue;
    }
    if (phase_of(rank) == segment::Phase::ready) continue;
    at.ended = true;
    --living_;
  }
}

} // namespace near::launch
