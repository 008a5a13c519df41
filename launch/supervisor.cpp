#include "launch/supervisor.h"

#include "boot/boot.h"
#include "launch/keys.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/futex.h"
#include "os/memory.h"
#include "surface/functions.h"

#include <algorithm>
#include <csignal>

namespace near::launch {
namespace {

constexpr std::uint64_t millisecond = 1'000'000;
// From the first failure to SIGTERM at once; from there to SIGKILL: long enough for a handler that saves
// something, short enough that all is over within a second.
constexpr std::uint64_t until_kill_ns = 400 * millisecond;
constexpr std::uint64_t until_kill_again_ns = 50 * millisecond;
// A wrapper has this long to end after its MPI process did, and to say with which status.
constexpr std::uint64_t wrapper_grace_ns = 100 * millisecond;
// After an interrupt, output that nobody reads is dropped.
constexpr std::uint64_t unread_output_ns = 500 * millisecond;
// Signals that are taken before other things have their turn: a rank may send them without end.
constexpr int signals_at_once = 64;
// The rank table is looked at this often in case a process could not signal (another process namespace).
constexpr int look_ms = 500;

} // namespace

base::Result Supervisor::prepare() {
  static constexpr int signals[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                    SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGURG};
  NEAR_TRY(inbox_.open(signals));
  // Three pipes and a watch a rank, two files where output is copied there, and some of our own.
  unsigned each = mission_.job.command.copy_output ? 7 : 5;
  NEAR_TRY(os::allow_descriptors(mission_.job.command.placement.ranks * each + 64));
  os::ignore_signal(SIGPIPE);
  os::ignore_signal(SIGXFSZ); // output beyond the limit on file sizes is a message, not our end
  os::ignore_signal(SIGTTOU);
  NEAR_TRY(os::lead_own_group());
  NEAR_TRY(os::become_subreaper());
  NEAR_TRY(os::watch_process(mission_.front, front_watch_));
  NEAR_TRY(poller_.open());
  NEAR_TRY(poller_.add(inbox_.descriptor(), key_signals));
  NEAR_TRY(poller_.add(front_watch_, key_front));
  NEAR_TRY(
      output_.open(poller_, key_streams, mission_.job.command.merge_output, mission_.job.command.timestamps));
  NEAR_TRY(poller_.add(output_.bell_descriptor(), key_bell));
  NEAR_TRY(segment_.attach(mission_.segment_descriptor, true));
  kills_before_ = os::read_memory_kills();
  return os::open_null(null_input_);
}

int Supervisor::run() {
  if (!prepare().ok()) {
    // Not through output_, which may be what could not be prepared.
    auto line = base::format("mpiexec: {}\n", base::failure_text());
    (void)os::write_all(2, line.data(), line.size());
    return 1;
  }
  if (mission_.job.command.timeout_s > 0)
    timeout_ns_ = os::monotonic_ns() + static_cast<std::uint64_t>(mission_.job.command.timeout_s * 1e9);
  if (!start_ranks().ok()) {
    Verdict verdict;
    verdict.reason = Reason::not_started;
    verdict.text = base::failure_text();
    verdict.status = 127;
    decide(verdict);
  }
  loop();
  return verdict_.status;
}

void Supervisor::loop() {
  reap();
  while (!finished()) {
    poller_.wait(next_timeout(os::monotonic_ns()), keys_);
    for (auto key : keys_) dispatch(key);
    on_time(os::monotonic_ns());
  }
}

void Supervisor::dispatch(std::uint64_t key) {
  if (key >= key_streams)
    output_.readable(key - key_streams);
  else if (key >= key_inner)
    inner_ended(static_cast<unsigned>(key - key_inner));
  else if (key == key_signals)
    take_signals();
  else if (key == key_bell) {
    output_.bell_rang();
    look_at_output();
  } else if (key == key_front)
    front_ended();
}

int Supervisor::next_timeout(std::uint64_t now_ns) {
  std::uint64_t due = UINT64_MAX;
  for (std::uint64_t at : {timeout_ns_, ask_ns_, kill_ns_, give_up_ns_, cards_ns_, foreign_ns_})
    if (at != 0) due = std::min(due, at);
  for (const auto& rank : ranks_)
    if (rank.inner_gone_ns != 0 && !rank.ended && !decided_)
      due = std::min(due, rank.inner_gone_ns + wrapper_grace_ns);
  int wait_ms = stage_ == Stage::draining ? -1 : look_ms;
  if (due != UINT64_MAX) {
    std::uint64_t left = due > now_ns ? (due - now_ns) / millisecond + 1 : 0;
    int left_ms = static_cast<int>(std::min<std::uint64_t>(left, 1'000'000));
    wait_ms = wait_ms < 0 ? left_ms : std::min(wait_ms, left_ms);
  }
  int output_ms = output_.tick(now_ns);
  if (output_ms >= 0) wait_ms = wait_ms < 0 ? output_ms : std::min(wait_ms, output_ms);
  return wait_ms;
}

void Supervisor::on_time(std::uint64_t now_ns) {
  if (stage_ == Stage::draining) return;
  // Output may wake this loop a hundred thousand times a second; the table is not that interesting.
  if (now_ns >= looked_ns_ + look_ms * millisecond / 2) look();
  for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
    auto& at = ranks_[rank];
    if (at.inner_gone_ns == 0 || at.ended || now_ns < at.inner_gone_ns + wrapper_grace_ns || decided_)
      continue;
    if (const auto* seen = seen_ending_of_inner(rank)) {
      decide(verdict_on(rank, *seen));
      continue;
    }
    Verdict verdict = verdict_on(rank, {at.number, 0});
    verdict.reason = Reason::vanished;
    verdict.text =
        at.wrapper_ended ? "had started its parent, which alone knows how" : "started it and goes on";
    verdict.status = 1;
    decide(std::move(verdict));
  }
  look_for_lost_ranks(now_ns);
  if (cards_ns_ != 0 && now_ns >= cards_ns_) {
    cards_ns_ = 0;
    if (stage_ == Stage::running) tell_cards();
  }
  if (foreign_ns_ != 0 && now_ns >= foreign_ns_) look_for_foreign_libraries(now_ns);
  if (timeout_ns_ != 0 && now_ns >= timeout_ns_) {
    timeout_ns_ = 0;
    time_out();
  }
  if (ask_ns_ != 0 && now_ns >= ask_ns_) {
    ask_ns_ = 0;
    asked_ = true;
    kill_all(SIGTERM);
    kill_all(SIGCONT); // a stopped process would not get the other
    kill_ns_ = now_ns + until_kill_ns;
  }
  if (kill_ns_ != 0 && now_ns >= kill_ns_) {
    // Again and again: a process may have forked while the list was made.
    kill_all(SIGKILL);
    kill_ns_ = now_ns + until_kill_again_ns;
  }
  reap();
}

bool Supervisor::finished() {
  if (give_up_ns_ != 0 && os::monotonic_ns() >= give_up_ns_ && no_children_) {
    say_verdict();
    return true;
  }
  if (stage_ != Stage::draining || !output_.drain()) return false;
  say_verdict();
  if (!output_.idle()) return false;
  // The last of the output may be what could not be written.
  look_at_output();
  say_verdict();
  return output_.idle();
}

// A closed pipe is how a reader says that it has had enough. Anything else is output that the user misses.
void Supervisor::look_at_output() {
  if (auto failure = output_.failure(); !failure.empty() && !decided_) {
    Verdict verdict;
    verdict.reason = Reason::unwritten;
    verdict.text = std::move(failure);
    verdict.status = 1;
    decide(std::move(verdict));
  }
}

// -print-all-exitcodes
void Supervisor::say_exit_codes() {
  if (codes_said_ || !mission_.job.command.print_exit_codes) return;
  codes_said_ = true;
  std::string codes;
  for (const auto& rank : ranks_) codes += (codes.empty() ? "" : ",") + std::to_string(rank.status);
  output_.say(base::format("mpiexec: exit codes: {}\n", codes));
}

void Supervisor::say_verdict() {
  say_exit_codes();
  if (said_ || !decided_) return;
  said_ = true;
  bool by_broken_pipe =
      verdict_.reason == Reason::signalled && verdict_.ending.signal() == SIGPIPE && output_.broken();
  if (by_broken_pipe) return;                               // the usual end of `mpiexec ... | head`
  verdict_.told = verdict_.told && output_.may_have_said(); // all that the ranks wrote has come
  output_.say(verdict_text(verdict_, others_, os::monotonic_ns()));
}

void Supervisor::decide(Verdict verdict, std::uint64_t grace_ns) {
  if (decided_ && (asked_ || weight(verdict) <= weight(verdict_))) return;
  decided_ = true;
  verdict_ = std::move(verdict);
  others_ = living_;
  bool about_rank = weight(verdict_) < weight_of_job;
  if (about_rank && !ranks_[verdict_.rank].ended) --others_;
  if (stage_ != Stage::running) return;
  stage_ = Stage::ending;
  ask_ns_ = os::monotonic_ns() + grace_ns;
}

void Supervisor::kill_all(int signal) {
  std::vector<os::Pid> known;
  for (const auto& rank : ranks_)
    if (rank.pid > 0 && !rank.ended) known.push_back(rank.pid);
  // Without /proc nobody but the ranks and their groups can be found: then they are all that is ended.
  out_of_reach_ = os::signal_descendants(signal, known) == 0 && !os::processes_are_listed();
}

void Supervisor::interrupt(int signal) {
  std::uint64_t now = os::monotonic_ns();
  if (decided_ || stage_ != Stage::running) {
    // Asked a second time: no more patience.
    asked_ = true;
    if (stage_ != Stage::draining) kill_ns_ = now;
    give_up_ns_ = now + unread_output_ns;
    return;
  }
  Verdict verdict;
  verdict.reason = Reason::interrupted;
  verdict.signal = signal;
  verdict.status = 128 + signal;
  decide(std::move(verdict));
  give_up_ns_ = now + until_kill_ns + unread_output_ns;
}

void Supervisor::front_ended() {
  poller_.remove(front_watch_);
  // The user has killed mpiexec: nobody waits for output or for a message.
  decided_ = asked_ = said_ = true;
  if (stage_ == Stage::running) stage_ = Stage::ending;
  verdict_.status = 128 + SIGKILL;
  ask_ns_ = 0;
  kill_ns_ = give_up_ns_ = os::monotonic_ns();
}

void Supervisor::forward(int signal) {
  for (const auto& rank : ranks_) {
    if (rank.ended || rank.pid == 0) continue;
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      os::send_signal(rank.inner != 0 && rank.inner_watch >= 0 ? rank.inner : rank.pid, signal);
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
    case SIGURG: asked = true; break; // a process wants the table looked at
    case SIGUSR1:
    case SIGUSR2: forward(signal); break;
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
  if (asked) look();
  if (ended) reap();
}

void Supervisor::time_out() {
  std::vector<os::Pid> pids;
  for (const auto& rank : ranks_) pids.push_back(rank.pid);
  Verdict verdict;
  verdict.reason = Reason::timed_out;
  verdict.status = 124;
  verdict.text = base::format("the job was ended after {:.9g} s (--timeout); what its ranks were doing:\n{}",
                              mission_.job.command.timeout_s,
                              segment::job_table(segment_, mission_.segment_descriptor,
                                                 surface::function_name, os::monotonic_ns(), pids));
  decide(std::move(verdict));
}

} // namespace near::launch
