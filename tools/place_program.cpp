// `near place -- PROGRAM`: samples a program that near starts, and the job that this program starts, on all of the job's machines.
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/signals.h"
#include "place/viewer.h"
#include "tools/placing.h"
#include "tools/rounds.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace near::tools {

namespace {

/// The program while it runs, and the best sample of it.
class Program {
public:
  Program(const PlaceOptions& options, Output& output) : options_(options), output_(output) {}
  base::Result start();
  /// Samples until the program ends. Fails if a sample cannot be shown.
  base::Result watch();
  /// Once the program has ended, shows the best sample and returns its exit status, or the result of --assert-local.
  int report();

private:
  void look_after_it();
  base::Result sample();
  base::Result sample_machines();
  bool job_ends();
  base::Result sample_here();
  int judge_best();

  const PlaceOptions& options_;
  Output& output_;
  os::SignalInbox inbox_;
  os::Poller poller_;
  std::int32_t child_ = 0;
  int watch_ = -1; ///< of the program
  bool ended_ = false;
  os::Ending ending_;

  std::unique_ptr<place::Viewer>
      viewer_; ///< of the job among the program's processes, if job_; otherwise of the program
  bool job_ = false;
  std::vector<segment::JobPart> parts_; ///< of the program's job on several machines
  std::int32_t mpiexec_ = 0;            ///< which has published them
  bool was_complete_ = true;            ///< all of them answered the last time
  place::Snapshot best_;
  Whole best_whole_;
  place::Weight weight_; ///< of best_whole_
  bool any_ = false;
  int asserted_ = 0; ///< result of asserting samples with --watch
  std::string problem_ = "it was too short";
};

base::Result Program::start() {
  static constexpr int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  NEAR_TRY(inbox_.open(signals));
  NEAR_TRY(poller_.open());
  NEAR_TRY(poller_.add(inbox_.descriptor(), 0));
  os::Launch launch;
  launch.program = options_.command[0];
  launch.arguments = options_.command;
  for (char** variable = environ; *variable != nullptr; ++variable)
    launch.environment.emplace_back(*variable);
  launch.own_group = false;
  NEAR_TRY(os::start_process(launch, child_));
  NEAR_TRY(os::watch_process(child_, watch_));
  return poller_.add(watch_, 1);
}

/// Passes signals on to the program, whose end will end us, and notes its end. Signals from a terminal have already reached it.
void Program::look_after_it() {
  std::int32_t sender = 0;
  while (int signal = inbox_.take(sender))
    if (signal != SIGCHLD && sender != 0) os::send_signal(child_, signal);
  if (ended_ || !os::wait_until_readable({&watch_, 1}, 0)) return;
  ended_ = true;
  (void)os::reap_child(child_, ending_);
}

/// A viewer of the job among the program's processes, or, if there is none (yet), of the program itself.
std::unique_ptr<place::Viewer> find_viewer(const std::vector<os::Pid>& processes, bool& job) {
  for (auto pid : processes) {
    auto viewer = std::make_unique<place::Viewer>();
    if (!viewer->open_job(pid).ok()) continue;
    job = true;
    return viewer;
  }
  auto viewer = std::make_unique<place::Viewer>();
  return viewer->open_process(processes.front()).ok() ? std::move(viewer) : nullptr;
}

base::Result Program::sample_machines() {
  const Meanwhile meanwhile{inbox_.descriptor(), [this] {
                              look_after_it();
                              return !ended_;
                            }};
  Whole whole = ask_places(options_, parts_, true, meanwhile);
  const place::Weight weight = place::weight_of(whole.documents);
  if (!weight.job) {
    parts_.clear(); // the job has ended; the program may start another
    return {};
  }
  if (options_.watch && !ended_) {
    if (whole.all.status == assertion_status) asserted_ = assertion_status;
    const bool may_end = was_complete_ && !whole.all.complete;
    was_complete_ = whole.all.complete;
    if (!may_end || !job_ends()) {
      NEAR_TRY(show(options_, whole, output_));
      std::fputs(whole.all.complaints.c_str(), stderr);
    }
  }
  if (weight < weight_) return {};
  weight_ = weight;
  best_whole_ = std::move(whole);
  return {};
}

/// Whether mpiexec ends within the time by which it may outlive the parts of its job.
bool Program::job_ends() {
  constexpr int steps = 50;
  Rounds rounds;
  if (!rounds.open(mpiexec_).ok()) return true;
  for (int step = 0; step < steps && !ended_; ++step) {
    if (rounds.ends_within(grace_s / steps)) return true;
    look_after_it();
  }
  return ended_;
}

base::Result Program::sample_here() {
  place::Snapshot snapshot;
  if (viewer_ == nullptr || !viewer_->sample(snapshot).ok()) {
    problem_ = base::failure_text();
    job_ = false; // the job has ended; the program may start another
    if (viewer_ != nullptr) viewer_->read_traffic(best_);
    return {};
  }
  if (options_.watch) NEAR_TRY(show(options_, snapshot, output_));
  if (options_.watch && job_ && asserted_ == 0) asserted_ = check(options_, snapshot);
  // Of two equal ones the later is better.
  if (!any_ || place::weight_of(snapshot) >= place::weight_of(best_)) best_ = std::move(snapshot);
  any_ = true;
  return {};
}

base::Result Program::sample() {
  auto processes = os::descendants_of(child_);
  processes.insert(processes.begin(), child_);
  for (auto pid = processes.begin(); parts_.empty() && pid != processes.end(); ++pid) {
    parts_ = segment::parts_of(*pid);
    mpiexec_ = *pid;
  }
  if (!parts_.empty()) return sample_machines();
  if (!job_) viewer_ = find_viewer(processes, job_);
  return sample_here();
}

base::Result Program::watch() {
  constexpr double ns_of_ms = 1e6, first_ms = 50; // doubled each time, so that short programs are sampled too
  const std::uint64_t started = os::monotonic_ns();
  const auto now_ms = [started] { return static_cast<double>(os::monotonic_ns() - started) / ns_of_ms; };
  std::vector<std::uint64_t> keys;
  for (double next_ms = first_ms; !ended_;) {
    poller_.wait(std::max(1, static_cast<int>(next_ms - now_ms())), keys);
    if (!keys.empty()) look_after_it();
    const double now = now_ms();
    if (ended_ || now < next_ms) continue;
    next_ms = now + std::min(options_.interval_s * 1000, std::max(first_ms, now));
    NEAR_TRY(sample());
  }
  if (any_ && viewer_ != nullptr) viewer_->read_traffic(best_); // all traffic, also after the last sample
  return {};
}

/// With --watch, samples of a job were asserted when they were taken. A launcher that has not yet started a job is not its job.
int Program::judge_best() {
  if (weight_.job) return options_.watch ? asserted_ : best_whole_.all.status;
  return !options_.watch || best_.job.empty() ? check(options_, best_) : asserted_;
}

int Program::report() {
  if (!any_ && !weight_.job) {
    std::fprintf(stderr, "near: '%s' ended before it could be sampled: %s\n", options_.command[0].c_str(),
                 problem_.c_str());
    return ending_.status() != 0 ? ending_.status() : 1;
  }
  if (!weight_.job && !parts_.empty())
    std::fputs("near: the job ended before all machines had answered; this is what ran on one of them\n",
               stderr);
  if (!options_.watch) {
    if (!(weight_.job ? show(options_, best_whole_, output_) : show(options_, best_, output_)).ok())
      return complain();
    std::fputs(best_whole_.all.complaints.c_str(), stderr);
  }
  const int judged = judge_best();
  return ending_.status() != 0 ? ending_.status() : judged;
}

} // namespace

int sample_program(const PlaceOptions& options, Output& output) {
  Program program(options, output);
  if (!program.start().ok() || !program.watch().ok()) return complain();
  return program.report();
}

} // namespace near::tools
