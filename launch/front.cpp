// The process that the user sees as mpiexec, and the other half of the guard: it makes the segment, starts
// the supervisor, hands signals on, and returns the supervisor's status. Each half cleans up when the other
// is killed: doc/launcher.md.
#include "launch/job.h"

#include "base/text.h"
#include "launch/supervisor.h"
#include "os/descriptor.h"
#include "os/lease.h"
#include "os/memory.h"
#include "profile/profile.h"

#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace near::launch {
namespace {

int complain() {
  std::fprintf(stderr, "mpiexec: %s\n", base::printable(base::failure_text(), true).c_str());
  return 1;
}

// What the ranks assume of copies: the machine's profile, if there is a good one.
void give_priors(const Job& job, segment::Segment& segment) {
  profile::Profile known;
  bool found = false;
  if (!profile::load(profile::machine_name(job.machine), known, found).ok() && !job.command.quiet)
    std::fprintf(stderr, "mpiexec: warning: %s\n", std::string(base::failure_text()).c_str());
  if (found) segment.header().priors = profile::priors_of(known);
}

// Waits for the supervisor's end while it hands signals on. Returns how it ended.
os::Ending attend(os::SignalInbox& inbox, os::Poller& poller, os::Pid supervisor) {
  std::vector<std::uint64_t> keys;
  for (;;) {
    poller.wait(-1, keys);
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
      // The shell takes the terminal back only when this process stops; SIGCONT is the shell's "go on".
      if (signal == SIGTSTP) os::send_signal(getpid(), SIGSTOP);
    }
  }
}

// The supervisor was killed: the ranks have got SIGKILL by parent death, and what they had started is ours
// now.
void end_orphans(const segment::Segment& segment) {
  std::vector<std::uint64_t> none;
  os::Poller pause;
  if (!pause.open().ok()) return;
  bool none_left = false;
  while (!none_left) {
    std::vector<os::Pid> ranks;
    for (std::uint32_t slot = 0; slot < segment.job_size(); ++slot)
      ranks.push_back(static_cast<os::Pid>(segment.entry(slot).pid.load_relaxed()));
    bool out_of_reach = os::signal_descendants(SIGKILL, ranks) == 0 && !os::processes_are_listed();
    os::Ending ending;
    while (os::reap(ending, none_left)) {}
    if (out_of_reach) return;
    if (!none_left) pause.wait(5, none);
  }
}

// The slots; or, where a rank file or --map-by puts several ranks on one processor though there are enough
// slots, the processors that it names: then ranks must not spin while they wait.
unsigned processors_of(const Job& job) {
  os::CpuSet all;
  for (const auto& place : job.plan.places) {
    if (place.cpus.empty()) return job.slots.count;
    all = all | place.cpus;
  }
  return all.count() < job.plan.places.size() ? all.count() : job.slots.count;
}

} // namespace

int run_job(const Job& job, char** environment) {
  static constexpr int signals[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                    SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGURG};
  segment::Segment segment;
  if (!segment.create(job.command.placement.ranks, job.command.placement.ranks, processors_of(job)).ok())
    return complain();
  give_priors(job, segment);
  if (!os::become_subreaper().ok()) return complain();
  os::SignalInbox inbox;
  os::Poller poller;
  if (!inbox.open(signals).ok() || !poller.open().ok() || !poller.add(inbox.descriptor(), 1).ok())
    return complain();

  std::fflush(nullptr);
  Mission mission{job, environment, segment.descriptor(), getpid(), getpgrp(), os::is_foreground_terminal(0)};
  os::Pid supervisor = 0;
  if (!os::fork_process(supervisor).ok()) return complain();
  if (supervisor == 0) {
    Supervisor half(mission); // and never destroyed: a thread of its may wait for a reader
    int status = half.run();
    if (getppid() != mission.front) os::end_lease(); // which would do it, but has been killed
    _exit(status);
  }

  os::Ending ending = attend(inbox, poller, supervisor);
  if (ending.by_signal()) {
    end_orphans(segment);
    std::fprintf(stderr, "mpiexec: the supervising process was killed by signal %d; the job is ended\n",
                 ending.signal());
  }
  return ending.status();
}

} // namespace near::launch
