// How a job on several machines ends.
#include "launch/job_of_machines.h"

#include "base/text.h"
#include "os/clock.h"
#include "os/signals.h"

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace near::launch {

using machines::Kind;

namespace {

/// An agent kills its ranks after 3 s; one that has not ended by this time does not answer.
constexpr std::uint64_t agents_until_kill_ns = 4 * os::second_ns;
/// The same for ranks that react to a user's signal: supervisor.cpp gives them 25 s.
constexpr std::uint64_t agents_until_kill_by_request_ns = agents_until_kill_ns + 25 * os::second_ns;
/// As in supervisor.cpp.
constexpr std::uint64_t until_repeated_ns = os::second_ns / 2;
/// How long after the end of an interrupted job unread output is dropped.
constexpr std::uint64_t until_given_up_ns = 2 * os::second_ns;

} // namespace

void JobOfMachines::take_signals() {
  os::Pid sender = 0;
  while (const int signal = inbox_.take(sender)) {
    switch (signal) {
    case SIGCHLD: {
      os::Ending ending;
      bool none_left = false;
      while (os::reap(ending, none_left))
        for (const auto& remote : machines_) (void)remote->reaped(ending);
      break;
    }
    case SIGUSR1:
    case SIGUSR2:
    case SIGTSTP:
    case SIGCONT: pass_on(signal); break;
    default: interrupt(signal); break;
    }
  }
}

void JobOfMachines::pass_on(int signal) {
  for (const auto& remote : machines_)
    if (remote->hello && !remote->ended) remote->say(Kind::signal, static_cast<std::uint64_t>(signal));
  if (signal != SIGTSTP) return;
  // The threads that write stop with this process, so they write first.
  constexpr int patience_ms = 100;
  std::vector<std::uint64_t> none;
  os::Poller pause;
  if (pause.open().ok()) pause.wait(patience_ms, none);
  os::send_signal(getpid(), SIGSTOP);
}

void JobOfMachines::interrupt(int signal) {
  const std::uint64_t now = os::monotonic_ns();
  if (interrupted_by_ != 0 && now - interrupted_ns_ < until_repeated_ns) return;
  interrupted_ns_ = now;
  if (state_ == State::ending || state_ == State::draining) {
    // The second interrupt: agents kill at once, and unread output is dropped.
    for (const unsigned part : parts_)
      if (!machines_[part]->ended) machines_[part]->say(Kind::signal, static_cast<std::uint64_t>(signal));
    kill_at_ns_ = std::min(kill_at_ns_, os::monotonic_ns() + os::second_ns);
    drop_output_ = true;
    return;
  }
  interrupted_by_ = signal;
  decide(report_about_job(base::format("ended by {}", os::signal_name(signal)), 128 + signal));
}

void JobOfMachines::decide(OutcomeReport report) {
  // The first report is closest to the cause. But ranks that lose their connection to a killed rank, or to a machine that
  // has failed, may report first.
  const int weight_of_signal = weight_of_job - 1;
  const bool explains_more =
      (report.weight == weight_of_signal && outcome_.weight < weight_of_signal && !report.told) ||
      (report.of_machine && outcome_.weight <= weight_of_signal);
  if (!decided_ || explains_more) outcome_ = std::move(report);
  decided_ = true;
  if (state_ == State::draining || (state_ == State::ending && kill_at_ns_ != 0)) return;
  const bool runs = state_ == State::running;
  state_ = State::ending;
  if (runs && interrupted_by_ != 0)
    end_all(Kind::signal, interrupted_by_);
  else
    end_all(Kind::end);
}

void JobOfMachines::end_all(Kind how, int signal) {
  if (kill_at_ns_ == 0)
    kill_at_ns_ = os::monotonic_ns() + (signal != 0 ? agents_until_kill_by_request_ns : agents_until_kill_ns);
  for (const auto& remote : machines_)
    if (remote->ranks.empty()) remote->ended = true; // it has not been told about the job
  const std::vector<bool> is_needed = needed();
  for (unsigned machine = 0; machine < machines_.size(); ++machine) {
    Remote& remote = *machines_[machine];
    if (remote.ranks.empty() && !is_needed[machine]) remote.kill();
    if (!remote.is_connected() || remote.ended || remote.failing || !remote.hello) continue;
    if (signal != 0)
      remote.say(how, static_cast<std::uint64_t>(signal));
    else
      remote.say(how);
  }
}

std::vector<bool> JobOfMachines::needed() const {
  std::vector<bool> is_needed(machines_.size());
  // A machine is reached from one with a lower number.
  for (unsigned machine = static_cast<unsigned>(machines_.size()); machine-- > 0;) {
    const Remote& remote = *machines_[machine];
    const bool has_part = state_ == State::greeting || !remote.ranks.empty();
    if (!remote.ended && has_part) is_needed[machine] = true;
    if (const auto found = behind_.find(machine); found != behind_.end() && is_needed[machine])
      is_needed[found->second] = true;
  }
  return is_needed;
}

/// Handles a machine that cannot be reached, or no longer can; this includes the machines behind it.
void JobOfMachines::lose(unsigned machine, std::string why) {
  Remote& remote = *machines_[machine];
  const std::vector<unsigned> own = remote.ended ? std::vector<unsigned>() : remote.ranks;
  std::vector<unsigned> behind;
  for (const auto& each : machines_) {
    const bool is_behind = each->is_behind(remote);
    if (!is_behind && each.get() != &remote) continue;
    if (is_behind && !each->ended) behind.insert(behind.end(), each->ranks.begin(), each->ranks.end());
    each->ended = true;
    each->status = 1;
    each->end_input();
    if (is_behind) each->part("");
  }
  remote.kill();
  const std::string from =
      remote.nearer() == nullptr ? "" : base::format(" (reached from {})", remote.nearer()->host.name);
  OutcomeReport report = report_about_job(base::format("machine {}{}: {}", remote.host.name, from, why), 1);
  report.of_machine = true;
  auto are = [](const std::vector<unsigned>& ranks) { return ranks.size() == 1 ? "is" : "are"; };
  if (!own.empty()) report.sentence += base::format("; {} {} lost", ranks_text(own), are(own));
  if (!behind.empty())
    report.sentence += base::format("; {} {} lost on the machines that are reached through it",
                                    ranks_text(behind), are(behind));
  decide(std::move(report));
}

void JobOfMachines::check_connections(std::uint64_t now_ns) {
  const std::vector<bool> is_needed = needed();
  for (unsigned machine = 0; machine < machines_.size(); ++machine) {
    Remote& remote = *machines_[machine];
    if (!is_needed[machine])
      remote.hang_up();
    else if (std::string why = remote.failure(now_ns); !why.empty() && needed()[machine])
      lose(machine, std::move(why));
  }
}

void JobOfMachines::check_time(std::uint64_t now_ns) {
  if (time_out_ns_ != 0 && now_ns > time_out_ns_ && !timed_out_ && state_ <= State::running) {
    timed_out_ = true;
    outcome_ = report_about_job(time_out_text(command_.timeout_s), 124);
    outcome_.has_table = true;
    decided_ = true;
    state_ = State::ending;
    end_all(Kind::time_out);
  }
  // A machine that has reported has no ranks any more, only output that is read slowly.
  if (kill_at_ns_ != 0 && now_ns > kill_at_ns_)
    for (unsigned machine = 0; machine < machines_.size(); ++machine)
      if (!machines_[machine]->ended && !machines_[machine]->report)
        lose(machine, "it does not end its part of the job");
  drop_output_ = drop_output_ || (give_up_ns_ != 0 && now_ns > give_up_ns_);
}

/// A reader closes a pipe when it has read enough. Any other failure loses output that the user expects.
void JobOfMachines::check_output() {
  if (const std::string failure = output_.failure(); !failure.empty() && !decided_)
    decide(report_about_job(failure, 1));
  if (!output_.broken() || stdout_closed_) return;
  stdout_closed_ = true;
  for (const unsigned part : parts_) machines_[part]->say(Kind::closed);
}

bool JobOfMachines::all_ended() const {
  if (state_ == State::greeting) return false;
  return std::all_of(machines_.begin(), machines_.end(), [this](const auto& each) {
    return each->ended || (each->ranks.empty() && state_ == State::running);
  });
}

bool JobOfMachines::finished() {
  if (state_ != State::draining && all_ended()) {
    state_ = State::draining;
    if (interrupted_by_ != 0) give_up_ns_ = os::monotonic_ns() + until_given_up_ns;
    for (const auto& remote : machines_) remote->hang_up();
  }
  if (state_ != State::draining) return false;
  bool closed = true;
  for (const auto& remote : machines_) closed = remote->close_output() && closed;
  if (drop_output_) {
    print_outcome();
    return true;
  }
  if (!closed || !output_.drain()) return false;
  check_output(); // it may be the last of the output that could not be written
  print_outcome();
  if (!output_.idle()) return false;
  check_output();
  return true;
}

void JobOfMachines::print_outcome() {
  if (printed_) return;
  printed_ = true;
  for (const auto& remote : machines_)
    if (!remote->is_connected()) remote->kill();
  if (!decided_) return;
  if (timed_out_) {
    outcome_.sentence += ":";
    for (const unsigned part : parts_)
      if (const auto& report = machines_[part]->report; report) outcome_.sentence += "\n" + report->sentence;
  }
  // One machine's report counts only the ranks there.
  outcome_.others = outcome_.not_started = 0;
  for (const unsigned part : parts_) {
    const auto& report = machines_[part]->report;
    if (!report) continue;
    outcome_.others += report->others;
    outcome_.not_started += report->not_started;
  }
  // The normal end of `mpiexec ... | head`.
  outcome_.told = outcome_.told || (stdout_closed_ && outcome_.status == 128 + SIGPIPE);
  output_.say(outcome_text(outcome_));
}

int JobOfMachines::status() const {
  if (decided_) return outcome_.status;
  for (const unsigned part : parts_)
    if (machines_[part]->status != 0) return machines_[part]->status;
  return 0;
}

} // namespace near::launch
