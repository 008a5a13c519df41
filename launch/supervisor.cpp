#include "launch/supervisor.h"

#include "launch/debugger.h"
#include "launch/keys.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "surface/functions.h"

#include <algorithm>
#include <csignal>

namespace near::launch {
namespace {

// SIGTERM follows the first failure at once, SIGKILL after this time: long enough for a handler that saves
// something, short enough that everything ends within a second.
constexpr std::uint64_t until_kill_ns = 400 * os::millisecond_ns;
// How long ranks have to save their work if a user or a batch system asks the job to end, and does not ask again. Batch systems
// often kill the job after 30 s.
constexpr std::uint64_t until_kill_by_request_ns = 25 * os::second_ns;
// Within this time the same request may come twice: `timeout` signals mpiexec, and then its whole group.
constexpr std::uint64_t until_repeated_ns = 500 * os::millisecond_ns;
// How long processes that ranks leave running may take after all ranks have succeeded, for example to compress results.
constexpr std::uint64_t until_left_end_ns = 10 * os::second_ns;
constexpr std::uint64_t until_lingering_is_said_ns = os::second_ns;
constexpr std::uint64_t until_kill_again_ns = 50 * os::millisecond_ns;
// How long after an interrupt unread output is dropped.
constexpr std::uint64_t unread_output_ns = 500 * os::millisecond_ns;
// How many signals are taken before other events are handled: a rank may send signals without end.
constexpr int signals_at_once = 64;

} // namespace

int Supervisor::run() {
  if (!prepare().ok()) {
    // Not through output_, which may be what has failed.
    auto line = base::format("mpiexec: {}\n", base::failure_text());
    (void)os::write_all(2, line.data(), line.size());
    return 1;
  }
  // In a job on several machines mpiexec on the first one counts the time for all.
  if (description_.job.command.timeout_s > 0 && !control_.is_open())
    timers_.set(Timer::time_out,
                os::monotonic_ns() + static_cast<std::uint64_t>(description_.job.command.timeout_s * 1e9));
  if (!start_ranks().ok()) {
    Outcome outcome;
    outcome.reason = Reason::not_started;
    outcome.text = base::failure_text();
    outcome.status = 127;
    decide(outcome);
  }
  loop();
  return outcome_.status;
}

void Supervisor::loop() {
  starting_ = false;
  for (int signal : to_forward_) forward(signal);
  timers_.set(Timer::poll, os::monotonic_ns());
  reap();
  while (!finished()) {
    poller_.wait(wait_ms(os::monotonic_ns()), keys_);
    for (auto key : keys_) dispatch(key);
    std::uint64_t now = os::monotonic_ns();
    run_timers(now);
    if (state_ == State::draining) continue;
    check_lost_ranks(now);
    reap();
  }
}

void Supervisor::dispatch(std::uint64_t key) {
  if (key >= key_streams)
    output_.readable(key - key_streams);
  else if (key >= key_mpi_process)
    mpi_process_ended(static_cast<unsigned>(key - key_mpi_process));
  else if (key >= key_table)
    serve_rank(static_cast<unsigned>(key - key_table));
  else if (key == key_control)
    take_orders();
  else if (key == key_signals)
    take_signals();
  else if (key == key_bell) {
    output_.bell_rang();
    check_output();
  } else if (key == key_front_end)
    front_end_died();
}

/// How long to sleep if nothing happens; -1: without limit.
int Supervisor::wait_ms(std::uint64_t now_ns) {
  int wait = -1;
  if (std::uint64_t due = timers_.next_ns(); due != Timers::never) {
    std::uint64_t left = due > now_ns ? (due - now_ns) / os::millisecond_ns + 1 : 0;
    wait = static_cast<int>(std::min<std::uint64_t>(left, 1'000'000));
  }
  int output_ms = output_.tick(now_ns);
  if (output_ms >= 0) wait = wait < 0 ? output_ms : std::min(wait, output_ms);
  return wait;
}

void Supervisor::run_timers(std::uint64_t now_ns) {
  for (Timers::Due due{}; timers_.take(now_ns, due);) on_timer(due, now_ns);
}

void Supervisor::on_timer(Timers::Due due, std::uint64_t now_ns) {
  switch (due.timer) {
  case Timer::poll: poll_ranks(); break;
  case Timer::wrapper: wrapper_out_of_time(due.rank); break;
  case Timer::left: break; // reap() notices that it is no longer set
  case Timer::lost: decide_on_lost_ranks(); break;
  case Timer::devices:
    if (state_ == State::running) find_devices();
    break;
  case Timer::foreign: check_foreign_libraries(now_ns); break;
  case Timer::time_out: time_out(); break;
  case Timer::late: decide_on_late_failure(); break;
  case Timer::linger: say_who_lingers(); break;
  case Timer::terminate:
    if (!decided()) say_who_lingers();
    enter(State::terminating);
    break;
  case Timer::kill: enter(State::killing); break;
  case Timer::give_up: drop_output_ = true; break;
  }
}

void Supervisor::enter(State next) {
  state_ = next;
  switch (next) {
  case State::running:
  case State::ending: break;
  case State::terminating: {
    const bool asked = outcome_.reason == Reason::interrupted;
    if (asked)
      ask_all(outcome_.signal);
    else
      kill_all(SIGTERM);
    kill_all(SIGCONT); // a stopped process would not receive the signal
    const std::uint64_t now = os::monotonic_ns();
    timers_.set(Timer::kill, now + (asked ? until_kill_by_request_ns : until_kill_ns));
    if (asked) timers_.set(Timer::linger, now + until_lingering_is_said_ns);
    break;
  }
  case State::killing:
    timers_.cancel(Timer::terminate);
    timers_.cancel(Timer::linger);
    kill_all(SIGKILL);
    // Repeated, since a process may have forked while the list was made.
    timers_.set(Timer::kill, os::monotonic_ns() + until_kill_again_ns);
    break;
  case State::draining:
    timers_.keep_only(Timer::give_up);
    if (outcome_.reason == Reason::interrupted && !timers_.is_set(Timer::give_up))
      timers_.set(Timer::give_up, os::monotonic_ns() + unread_output_ns);
    break;
  }
}

/// All ranks have succeeded, but processes that they started still run.
void Supervisor::wait_for_left_processes() {
  const std::uint64_t now = os::monotonic_ns();
  timers_.cancel(Timer::time_out);
  // Processes that cannot be found cannot be waited for.
  if (!os::processes_are_listed()) return timers_.set(Timer::terminate, now);
  timers_.set(Timer::linger, now + until_lingering_is_said_ns);
  timers_.set(Timer::terminate, now + until_left_end_ns);
}

bool Supervisor::finished() {
  if (drop_output_ && no_children_) {
    report_outcome();
    return true;
  }
  if (state_ != State::draining) return false;
  const bool drained = output_.drain();
  // The agent need not wait for a slow reader of the output to learn that no process is left.
  if (drained || control_.is_open()) report_outcome();
  if (!drained) return false;
  if (!output_.idle()) return false;
  // It may be the last of the output that could not be written.
  check_output();
  report_outcome();
  return output_.idle();
}

// A reader closes a pipe when it has read enough. Any other failure loses output that the user expects.
void Supervisor::check_output() {
  if (auto failure = output_.failure(); !failure.empty() && !decided()) {
    Outcome outcome;
    outcome.reason = Reason::unwritten;
    outcome.text = std::move(failure);
    outcome.status = 1;
    decide(std::move(outcome));
  }
}

// -print-all-exitcodes
void Supervisor::report_exit_codes() {
  if (codes_reported_ || !description_.job.command.print_exit_codes) return;
  codes_reported_ = true;
  std::string codes;
  for (const auto& rank : ranks_)
    codes += (codes.empty() ? "" : ",") + (rank.pid == 0 ? "-" : std::to_string(rank.status));
  output_.say(base::format("mpiexec: exit codes: {}\n", codes));
}

void Supervisor::report_outcome() {
  report_exit_codes();
  if (reported_ || !decided()) return;
  reported_ = true;
  if (outcome_.reason == Reason::abandoned && control_.is_open()) return; // the agent says it, if it is there
  bool by_broken_pipe =
      outcome_.reason == Reason::signalled && outcome_.ending.signal() == SIGPIPE && output_.broken();
  if (by_broken_pipe && !control_.is_open()) return;        // the normal end of `mpiexec ... | head`
  outcome_.told = outcome_.told && output_.may_have_said(); // all output of the ranks has arrived
  outcome_.told = outcome_.told || by_broken_pipe;
  const auto not_started =
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.pid == 0; });
  const auto report = report_of(outcome_, others_, static_cast<unsigned>(not_started), os::monotonic_ns());
  if (control_.is_open())
    control_.send(machines::Kind::outcome, report.body());
  else
    output_.say(outcome_text(report));
}

void Supervisor::decide(Outcome outcome, std::uint64_t grace_ns) {
  if (decided() && (is_final() || weight(outcome) <= weight(outcome_))) return;
  outcome_ = std::move(outcome);
  others_ = living_;
  bool about_rank = outcome_.reason != Reason::elsewhere && weight(outcome_) < weight_of_job;
  if (about_rank && !ranks_[outcome_.row].ended) --others_;
  if (!failure_told_ && outcome_.reason != Reason::elsewhere)
    control_.send(machines::Kind::failed, static_cast<std::uint64_t>(weight(outcome_)));
  failure_told_ = true;
  if (state_ == State::ending && living_ == 0) timers_.advance(Timer::terminate, os::monotonic_ns());
  if (state_ != State::running) return;
  enter(State::ending);
  timers_.set(Timer::terminate, os::monotonic_ns() + grace_ns);
}

std::vector<os::Pid> Supervisor::living_pids() const {
  std::vector<os::Pid> known;
  for (const auto& rank : ranks_)
    if (rank.pid > 0 && !rank.ended) known.push_back(rank.pid);
  return known;
}

void Supervisor::kill_all(int signal) {
  // Without /proc only the ranks and their process groups can be found; then only these are ended.
  out_of_reach_ = os::signal_descendants(signal, living_pids()) == 0 && !os::processes_are_listed();
}

void Supervisor::ask_all(int signal) {
  out_of_reach_ = os::ask_descendants(signal, living_pids()) == 0 && !os::processes_are_listed();
}

void Supervisor::interrupt(int signal) {
  std::uint64_t now = os::monotonic_ns();
  if (interrupted_ns_ != 0 && now - interrupted_ns_ < until_repeated_ns) return;
  interrupted_ns_ = now;
  // For processes that ranks have left running.
  if (state_ == State::ending && living_ == 0 && !decided()) return timers_.advance(Timer::terminate, now);
  // On a terminal, a rank in mpiexec's group gets the signal, too, and its end may be seen first.
  const bool seen_first =
      state_ == State::ending && outcome_.reason == Reason::signalled && outcome_.ending.signal() == signal;
  if (state_ != State::running && !seen_first) {
    // The second interrupt: kill immediately.
    if (state_ != State::draining) enter(State::killing);
    drop_output_ = false;
    timers_.set(Timer::give_up, now + unread_output_ns);
    return;
  }
  Outcome outcome;
  outcome.reason = Reason::interrupted;
  outcome.signal = signal;
  outcome.status = 128 + signal;
  decide(std::move(outcome));
}

void Supervisor::front_end_died() {
  poller_.remove(front_end_watch_);
  abandon();
}

void Supervisor::serve_rank(unsigned row) {
  table_.readable(row);
  if (any_ended_ && living_ > 0 && !starting_) check_missing_init();
}

/// Receives what mpiexec on another machine has sent through the agent.
void Supervisor::take_orders() {
  std::vector<machines::Frame> orders;
  if (!control_.read(orders)) {
    poller_.remove(control_.descriptor());
    abandon();
    return;
  }
  for (const auto& order : orders) {
    if (order.kind == machines::Kind::value || order.kind == machines::Kind::fence_over) table_.told(order);
    if (order.kind == machines::Kind::go_on) let_go(segment_);
    if (order.kind == machines::Kind::time_out) time_out();
    if (order.kind != machines::Kind::end) continue;
    Outcome outcome;
    outcome.reason = Reason::elsewhere;
    decide(std::move(outcome));
  }
}

void Supervisor::abandon() {
  // mpiexec was killed, so nobody waits for output. Its standard error may still be a terminal or a file, where the
  // last line says what happened; a pipe that nobody reads must not keep this process alive.
  if (!decided()) others_ = living_;
  outcome_.reason = Reason::abandoned;
  outcome_.status = 128 + SIGKILL;
  timers_.set(Timer::give_up, os::monotonic_ns() + unread_output_ns);
  if (state_ != State::draining) enter(State::killing);
}

void Supervisor::forward(int signal) {
  for (const auto& rank : ranks_) {
    if (rank.ended || rank.pid == 0) continue;
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      os::send_signal(rank.mpi_process != 0 && rank.mpi_process_watch >= 0 ? rank.mpi_process : rank.pid,
                      signal);
    }
  }
}

void Supervisor::take_signals() {
  os::Pid sender = 0;
  bool ended = false, asked = false;
  for (int taken = 0; taken < signals_at_once; ++taken) {
    int signal = inbox_.take(sender);
    if (signal == 0) break;
    switch (signal) {
    case SIGCHLD: ended = true; break;
    case SIGURG: asked = true; break; // a process asks for the rank table to be polled
    case SIGUSR1:
    case SIGUSR2:
      if (starting_)
        to_forward_.push_back(signal);
      else
        forward(signal);
      break;
    case SIGTSTP:
      paused_ = true;
      kill_all(SIGSTOP);
      break;
    case SIGCONT:
      paused_ = false;
      kill_all(SIGCONT);
      break;
    default: interrupt(signal); break;
    }
  }
  if (asked) poll_ranks();
  if (ended) reap();
}

void Supervisor::time_out() {
  std::vector<os::Pid> pids;
  std::vector<unsigned> ranks;
  for (unsigned row = 0; row < ranks_.size(); ++row) {
    pids.push_back(ranks_[row].pid);
    ranks.push_back(description_.job.rank_of(row));
  }
  Outcome outcome;
  outcome.reason = Reason::timed_out;
  outcome.status = 124;
  auto beginning = control_.is_open() ? base::format("on {}:", os::machine_name())
                                      : time_out_text(description_.job.command.timeout_s) + ":";
  outcome.text = base::format("{}\n{}", beginning,
                              segment::job_table(segment_, description_.segment_descriptor,
                                                 {surface::function_name, surface::function_tells},
                                                 os::monotonic_ns(), pids, ranks));
  decide(std::move(outcome));
}

} // namespace near::launch
