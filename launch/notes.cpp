// Notes that are printed while the job runs.
//
// Two of them are about jobs that make no progress. In the first case, a rank waits for one that has called
// MPI_Finalize: a frequent mistake, and a silent one, since MPI_Finalize need not wait and the waiting rank
// cannot know. Only the segment is examined. In the second case, ranks wait for standard input (-s all)
// because one of them does not read it.
//
// The third is about ranks that have loaded another MPI's library in a way that only a running process shows:
// behind `env`, in a Python module, or through a library of the program.
#include "launch/supervisor.h"

#include "base/text.h"
#include "launch/linkage.h"
#include "os/clock.h"
#include "surface/functions.h"

#include <string_view>
#include <unistd.h>
#include <vector>

namespace near::launch {
namespace {

// Long enough for a message in flight, and for a machine that is swapping.
constexpr std::uint64_t patience_ns = 3'000'000'000;
// A program that has not loaded an MPI library by then hardly ever will.
constexpr std::uint64_t last_foreign_check_ns = 10'000'000'000;

struct Waiting {
  unsigned rank;
  segment::Activity activity;
};

std::string who_left(const std::vector<unsigned>& ranks) {
  constexpr std::size_t shown = 4;
  std::string list;
  for (std::size_t i = 0; i < ranks.size() && i < shown; ++i)
    list += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > shown) list += " and " + base::counted(ranks.size() - shown, "other");
  return (ranks.size() == 1 ? "rank " + list + " has" : "ranks " + list + " have") + " called MPI_Finalize";
}

std::string who_waits(const Waiting& waiting, std::size_t others) {
  const auto& function = surface::functions[waiting.activity.function];
  std::string text = base::format("rank {} waits in {}", waiting.rank, function.name);
  if (function.tells && waiting.activity.context == segment::world_context) text += " on MPI_COMM_WORLD";
  if (others > 0)
    text += base::format(" and {} {} too", base::counted(others, "other"), others == 1 ? "waits" : "wait");
  return text;
}

std::string names_of(const std::vector<os::Pid>& processes) {
  constexpr std::size_t shown = 4;
  std::string list;
  for (std::size_t i = 0; i < processes.size() && i < shown; ++i)
    list += base::format("{}{} (pid {})", i == 0 ? "" : ", ", os::name_of(processes[i]), processes[i]);
  if (processes.size() > shown) list += " and " + base::counted(processes.size() - shown, "other");
  return list;
}

} // namespace

/// Reports why the job has not ended although a rank has failed after MPI_Finalize, or all ranks have ended, or it was asked to
/// end; and which processes are ended because they took too long.
void Supervisor::say_who_lingers() {
  if (no_children_ || description_.job.command.quiet) return;
  if (state_ == State::running && late_.reason != Reason::none && living_ > 0) {
    std::string sentence = outcome_text(report_of(late_, 0, 0, os::monotonic_ns()));
    const auto end = sentence.find_first_of(";\n");
    output_.say(base::format("{}; the other ranks go on\n", sentence.substr(0, end)));
    return;
  }
  if (state_ == State::terminating && outcome_.reason == Reason::interrupted && living_ > 0) {
    output_.say(
        base::format("mpiexec: note: {} still {} after {}, which {} handle or ignore; a second signal "
                     "ends everything at once\n",
                     base::counted(living_, "rank"), living_ == 1 ? "runs" : "run",
                     os::signal_name(outcome_.signal), living_ == 1 ? "it may" : "they may"));
  } else if (state_ == State::ending && !decided()) {
    const std::string names = names_of(os::descendants_of(getpid()));
    if (names.empty()) return;
    const auto& part = description_.job.part;
    const bool ends_now = !timers_.is_set(Timer::terminate);
    output_.say(base::format("mpiexec: note: all ranks{} have ended; {}: {}{}\n",
                             part.machines > 1 ? base::format(" on {}", os::machine_name()) : std::string(),
                             ends_now ? "ending the processes that they left running"
                                      : "waiting up to 10 s for processes that they started",
                             names, ends_now ? ". Let the program wait for what it starts" : ""));
  }
}

/// Returns the note about ranks that wait for ranks which have called MPI_Finalize; empty if this is not
/// certain. `since` is set to a number that identifies the wait.
std::string Supervisor::stall_text(std::uint64_t& since) {
  std::vector<Waiting> waiting;
  std::vector<unsigned> left;
  std::vector<bool> has_left(ranks_.size(), false);
  bool all_wait = true;
  since = 0;
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    auto phase = phase_of(rank);
    if (phase == segment::Phase::finalized) has_left[rank] = true;
    if (phase == segment::Phase::ready) {
      auto activity = segment::activity_of(segment_, rank);
      bool waits = activity.consistent && activity.function != 0 &&
                   activity.function <= surface::function_count && activity.since_ns != 0;
      all_wait = all_wait && waits;
      if (waits) since += activity.since_ns;
      if (waits && std::string_view(surface::function_name(activity.function)) == "MPI_Finalize")
        has_left[rank] = true;
      else if (waits)
        waiting.push_back({rank, activity});
    } else if (!has_left[rank]) {
      all_wait = false;
    }
    if (has_left[rank]) left.push_back(rank);
  }
  if (left.empty() || waiting.empty()) return {};
  // No rank is left that could resolve it: every other rank waits too.
  if (all_wait) return who_waits(waiting.front(), waiting.size() - 1) + "; " + who_left(left);
  // Other ranks may be busy, but this one waits for a rank that has left. The peer's rank is known from
  // outside only in MPI_COMM_WORLD. The peer of a collective is its root, which is not all that it waits
  // for.
  for (const auto& one : waiting) {
    const auto& activity = one.activity;
    bool from_world =
        surface::functions[activity.function].tells && activity.context == segment::world_context;
    bool has_peer = activity.peer >= 0 && static_cast<std::size_t>(activity.peer) < ranks_.size();
    bool alone = surface::functions[activity.function].chapter == 3;
    if (!from_world || !has_peer || !alone || !has_left[static_cast<std::size_t>(activity.peer)]) continue;
    since = activity.since_ns;
    return who_waits(one, 0) + "; " + who_left({static_cast<unsigned>(activity.peer)});
  }
  return {};
}

void Supervisor::check_stall() {
  if (stall_said_ || description_.job.command.quiet || state_ != State::running) return;
  if (description_.job.part.machines > 1) return; // what ranks elsewhere do is not known here
  std::uint64_t since = 0;
  auto text = stall_text(since);
  if (text.empty() || paused_) {
    stall_.reset();
    return;
  }
  if (!stall_.lasts(since, os::monotonic_ns(), patience_ns)) return;
  stall_said_ = true;
  output_.say(base::format("mpiexec: note: {}; `near top --job {}` shows every rank\n", text,
                           description_.front_end));
}

void Supervisor::check_held_input() {
  if (hold_said_ || description_.job.command.quiet || state_ != State::running) return;
  auto hold = input_.hold();
  if (!hold.held || paused_) {
    hold_.reset();
    return;
  }
  if (!hold_.lasts(hold, os::monotonic_ns(), patience_ns)) return;
  hold_said_ = true;
  output_.say(
      base::format("mpiexec: note: rank {} does not read its standard input, so the other ranks get no more "
                   "of theirs; -s with the ranks that read leaves it out\n",
                   hold.rank));
}

// One rank of each program is enough, and a rank that has called MPI_Init is fine.
void Supervisor::check_foreign_libraries(std::uint64_t now_ns) {
  const auto& job = description_.job;
  if (job.foreign_told || job.command.quiet || state_ != State::running) return;
  std::vector<bool> seen(job.command.applications.size(), false);
  std::vector<os::Pid> processes;
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    auto application = job.application_of[rank];
    if (seen[application] || ranks_[rank].ended || phase_of(rank) != segment::Phase::launched) continue;
    seen[application] = true;
    processes.push_back(ranks_[rank].pid);
    for (os::Pid below : os::descendants_of(ranks_[rank].pid)) processes.push_back(below);
  }
  if (auto sentence = foreign_process(processes); !sentence.empty())
    output_.say(base::format("mpiexec: warning: {}\n", sentence));
  else if (!processes.empty() && now_ns < started_ns_ + last_foreign_check_ns)
    timers_.set(Timer::foreign, now_ns + (now_ns - started_ns_));
}

} // namespace near::launch
