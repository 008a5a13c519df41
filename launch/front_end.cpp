// The front end: the process that the user sees as mpiexec, and one of the two halves that guard each
// other. It creates the segment, starts the supervisor, forwards signals, and returns the supervisor's
// status. Each half cleans up if the other is killed: doc/launcher.md.
#include "launch/job.h"

#include "base/knob.h"
#include "base/text.h"
#include "launch/control.h"
#include "launch/debugger.h"
#include "launch/keys.h"
#include "launch/outcome.h"
#include "launch/supervisor.h"
#include "os/descriptor.h"
#include "os/lease.h"
#include "os/limits.h"
#include "os/memory.h"
#include "profile/profile.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace near::launch {
namespace {

int complain() {
  std::fprintf(stderr, "mpiexec: %s\n", base::printable(base::failure_text(), true).c_str());
  return 1;
}

// Gives the ranks their initial estimates of copies from the machine's profile, if there is a valid one.
void give_estimates(const Job& job, segment::Segment& segment) {
  profile::Profile known;
  bool found = false;
  if (!profile::load(profile::machine_name(job.machine), known, found).ok() && !job.command.quiet)
    std::fprintf(stderr, "mpiexec: warning: %s\n", std::string(base::failure_text()).c_str());
  if (found) segment.header().estimates = profile::estimates_of(known);
}

constexpr std::uint64_t key_pids = 2; ///< beside key_signals

/// Receives the ranks' process ids from the supervisor, for debuggers.
class Pids {
public:
  explicit Pids(int descriptor) : descriptor_(descriptor) {}
  /// Reads what has arrived. Returns true once, when the supervisor has sent all of them.
  bool take(std::size_t wanted, bool& over) {
    char buffer[4096];
    std::size_t got = 0;
    os::Transfer state;
    while ((state = os::read_some(descriptor_, buffer, sizeof buffer, got)) == os::Transfer::some)
      bytes_.insert(bytes_.end(), buffer, buffer + got);
    over = state != os::Transfer::nothing_now;
    return over && bytes_.size() == wanted * sizeof(os::Pid);
  }
  std::vector<os::Pid> list() const {
    std::vector<os::Pid> pids(bytes_.size() / sizeof(os::Pid));
    std::memcpy(pids.data(), bytes_.data(), pids.size() * sizeof(os::Pid));
    return pids;
  }

private:
  int descriptor_;
  std::vector<char> bytes_;
};

void tell_debugger_of(const Job& job, const std::vector<os::Pid>& pids) {
  const std::vector<std::string> programs = program_files(job.command);
  std::vector<Debugged> ranks;
  for (std::size_t rank = 0; rank < std::min(pids.size(), job.application_of.size()); ++rank)
    ranks.push_back({os::machine_name(), programs[job.application_of[rank]], pids[rank]});
  tell_debugger(std::move(ranks));
}

// Waits for the supervisor to end; meanwhile forwards signals and tells debuggers about the ranks. Returns
// how the supervisor ended.
os::Ending attend(const Job& job, segment::Segment& segment, os::SignalInbox& inbox, os::Poller& poller,
                  os::Pid supervisor, int pids_from) {
  std::vector<std::uint64_t> keys;
  Pids pids(pids_from);
  for (;;) {
    poller.wait(-1, keys);
    bool over = false;
    if (std::find(keys.begin(), keys.end(), key_pids) != keys.end()) {
      if (pids.take(job.application_of.size(), over)) tell_debugger_of(job, pids.list());
      if (over) {
        poller.remove(pids_from);
        if (!job.part.debugged) let_go(segment); // otherwise mpiexec says when
      }
    }
    os::Pid sender = 0;
    while (int signal = inbox.take(sender)) {
      if (signal == SIGCHLD) {
        os::Ending ending;
        bool none_left = false;
        while (os::reap(ending, none_left))
          if (ending.pid == supervisor) return ending;
        continue;
      }
      os::send_signal(supervisor, signal);
      // The shell takes the terminal back only when this process stops; with SIGCONT the shell lets it
      // continue.
      if (signal == SIGTSTP) os::send_signal(getpid(), SIGSTOP);
    }
  }
}

// Called after the supervisor was killed: the ranks have received SIGKILL when their parent died, and the
// processes that they had started are now descendants of this one.
void end_orphans(const segment::Segment& segment) {
  std::vector<std::uint64_t> none;
  os::Poller pause;
  if (!pause.open().ok()) return;
  bool none_left = false;
  while (!none_left) {
    std::vector<os::Pid> ranks;
    for (std::uint32_t rank = 0; rank < segment.job_size(); ++rank)
      ranks.push_back(static_cast<os::Pid>(segment.entry(rank).pid.load_relaxed()));
    bool out_of_reach = os::signal_descendants(SIGKILL, ranks) == 0 && !os::processes_are_listed();
    os::Ending ending;
    while (os::reap(ending, none_left)) {}
    if (out_of_reach) return;
    if (!none_left) pause.wait(5, none);
  }
}

// Returns the number of slots. Where a rankfile or --map-by puts several ranks on one processor although
// there are enough slots, returns the number of processors that it names: ranks must then not spin while
// they wait.
unsigned processors_of(const Job& job) {
  os::CpuSet all;
  for (const auto& binding : job.plan.bindings) {
    if (binding.cpus.empty()) return job.slots.count;
    all = all | binding.cpus;
  }
  return all.count() < job.plan.bindings.size() ? all.count() : job.slots.count;
}

/// Computes from the knobs what the ranks reserve at start. Fails if the machine or the control group does
/// not have that much. The pages of queues and packets exist from MPI_Init on, whatever is sent. `needed` is
/// the most of the segment that one rank needs, and `reserved` the part of it that it reserves.
Result check_cost(const Job& job, char** environment, std::uint64_t& needed, std::uint64_t& reserved) {
  const segment::JobShape shape{job.command.mapping.ranks, processors_of(job)};
  std::uint64_t total = 0;
  std::string dearest;
  for (const auto& application : job.command.applications) {
    auto rows = environment_for(job.command, application, environment);
    std::vector<char*> entries;
    for (auto& row : rows) entries.push_back(row.data());
    entries.push_back(nullptr);
    NEAR_TRY(base::read_knobs(entries.data()));
    std::uint64_t one = segment::reserved_by_knobs(shape);
    total += one * application.ranks;
    needed = std::max(needed, segment::bytes_by_knobs(shape));
    if (one > reserved) {
      reserved = one;
      dearest = segment::reserving_knobs(shape);
    }
  }
  NEAR_TRY(base::read_knobs(environment));
  auto text = base::format("{} of packets and queues for {} ({})", base::format("{} MiB", total >> 20),
                           base::counted(job.application_of.size(), "rank"), dearest);
  if (total >= segment::checked_reserve)
    if (Result fits = os::check_memory(total); !fits.ok())
      return base::fail(fits.code(), "{} do not fit: {}; lower the one that is too large", text,
                        std::string(base::failure_text()));
  if (total >= segment::large_reserve && !job.command.quiet)
    std::fprintf(stderr, "mpiexec: note: %s are reserved when the ranks begin\n", text.c_str());
  return {};
}

} // namespace

int run_job(const Job& job, char** environment) {
  static constexpr int signals[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                    SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGURG};
  std::uint64_t needed = 0, reserved = 0;
  if (!check_cost(job, environment, needed, reserved).ok()) return complain();
  segment::Segment segment;
  if (!segment.create(job.command.mapping.ranks, job.command.mapping.ranks, processors_of(job), needed).ok())
    return complain();
  segment.header().expected_reserve = reserved;
  give_estimates(job, segment);
  if (!os::become_subreaper().ok()) return complain();
  os::SignalInbox inbox;
  os::Poller poller;
  if (!inbox.open(signals).ok() || !poller.open().ok() || !poller.add(inbox.descriptor(), key_signals).ok())
    return complain();

  int pids_from = -1, pids_to = -1;
  if (!os::make_pipe(pids_from, pids_to).ok() || !poller.add(pids_from, key_pids).ok()) return complain();
  if (is_debugged() || job.part.debugged) hold(segment);

  std::fflush(nullptr);
  JobDescription description{
      job, environment, segment.descriptor(), getpid(), getpgrp(), os::is_controlling_terminal(0), pids_to};
  os::Pid supervisor = 0;
  if (!os::fork_process(supervisor).ok()) return complain();
  if (supervisor == 0) {
    os::close_descriptor(pids_from);
    Supervisor half(description); // never destroyed: one of its threads may be waiting for a reader
    int status = half.run();
    if (getppid() != description.front_end) os::end_lease(); // the front end would do it, but has been killed
    _exit(status);
  }

  os::close_descriptor(pids_to);
  os::Ending ending = attend(job, segment, inbox, poller, supervisor, pids_from);
  if (ending.by_signal()) {
    end_orphans(segment);
    if (Control agent; job.part.control >= 0) {
      agent.open(job.part.control);
      agent.send(machines::Kind::outcome, report_about_unwatched(ending.signal(), segment.job_size()).body());
    } else {
      std::fprintf(stderr, "mpiexec: the supervising process was killed by signal %d; the job is ended\n",
                   ending.signal());
    }
  }
  return ending.status();
}

} // namespace near::launch
