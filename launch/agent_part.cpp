#include "launch/agent_part.h"

#include "launch/outcome.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "os/signals.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace near::launch {
namespace {

using machines::Frame;
using machines::Kind;

/// The most output that may be under way to mpiexec.
constexpr std::uint64_t most_under_way = 1u << 20;
/// A part that was told to end is killed if it has not ended after this time.
constexpr std::uint64_t ranks_until_kill_ns = 3'000'000'000;

/// Waits for the job. Returns false if there will be none.
bool read_job(int from, AgentJob& job) {
  machines::FrameReader reader;
  for (Frame frame;;) {
    char buffer[1 << 16];
    std::size_t got = 0;
    constexpr std::uint64_t an_hour_ns = 3'600'000'000'000;
    const int only[] = {from};
    (void)os::wait_until_readable(only, an_hour_ns);
    const os::Transfer what = os::read_some(from, buffer, sizeof buffer, got);
    if (what == os::Transfer::nothing_now) continue;
    if (what != os::Transfer::some) return false;
    reader.feed({buffer, got});
    if (reader.next(frame)) return AgentJob::read(frame.body, job);
  }
}

} // namespace

Result AgentPart::fork() {
  int input_from = -1, control_to = -1, job_from = -1;
  int output_to[2] = {-1, -1};
  NEAR_TRY(os::make_pipe(job_from, job_));
  NEAR_TRY(os::make_input_pipe(input_from, input_));
  for (int which : {0, 1}) NEAR_TRY(os::make_pipe(output_[which], output_to[which]));
  NEAR_TRY(os::make_sockets(control_, control_to));
  NEAR_TRY(os::fork_process(child_));
  if (child_ == 0) {
    os::redirect(input_from, output_to[0], output_to[1]);
    for (int kept : {job_, input_, output_[0], output_[1], control_, input_from, output_to[0], output_to[1]})
      os::close_descriptor(kept);
    run(job_from, control_to);
  }
  for (int of_child : {job_from, input_from, output_to[0], output_to[1], control_to})
    os::close_descriptor(of_child);
  return {};
}

/// Runs in the child.
void AgentPart::run(int from, int control) {
  AgentJob job;
  if (!read_job(from, job)) _exit(0);
  os::close_descriptor(from);
  int nothing = -1;
  if (!job.has_input && os::open_null(nothing).ok()) {
    os::redirect(nothing, 1, 2);
    os::close_descriptor(nothing);
  }
  const int status = run_part(job, control);
  std::fflush(nullptr);
  _exit(status);
}

Result AgentPart::start(os::Poller& poller, std::uint64_t key, os::Bell& bell) {
  poller_ = &poller;
  key_ = key;
  NEAR_TRY(to_control_.start(bell));
  NEAR_TRY(to_input_.start(bell));
  return poller.add(control_, key_ + key_control);
}

void AgentPart::give(const AgentJob& job, std::string_view body) {
  has_job_ = true;
  ranks_ = job.ranks.size();
  if (!job.has_input) {
    os::close_descriptor(input_);
    input_ = -1;
  }
  to_control_.put(job_, machines::frame(Kind::job, body));
  for (unsigned which : {0u, 1u}) watch_output(which, true);
  say(Kind::started, static_cast<std::uint64_t>(child_));
}

void AgentPart::say(Kind kind, std::uint64_t number) {
  say_(kind, machines::BodyWriter().number(number).body());
}

void AgentPart::dispatch(std::uint64_t key) {
  if (key == key_control)
    take_reports();
  else
    carry_output(static_cast<unsigned>(key - key_output));
}

void AgentPart::watch_output(unsigned which, bool watched) {
  if (output_[which] < 0 || watched_[which] == watched) return;
  watched_[which] = watched;
  if (watched)
    (void)poller_->add(output_[which], key_ + key_output + which);
  else
    poller_->remove(output_[which]);
}

void AgentPart::carry_output(unsigned which) {
  if (output_[which] < 0) return;
  char buffer[1 << 16];
  std::size_t got = 0;
  switch (os::read_some(output_[which], buffer, sizeof buffer, got)) {
  case os::Transfer::some:
    say_(which == 0 ? Kind::output : Kind::error, {buffer, got});
    under_way_ += got;
    if (under_way_ > most_under_way)
      for (unsigned each : {0u, 1u}) watch_output(each, false);
    return;
  case os::Transfer::nothing_now:
    if (!ended_) return;
    [[fallthrough]];
  default:
    watch_output(which, false);
    os::close_descriptor(output_[which]);
    output_[which] = -1;
  }
}

/// Once the child has ended, no rank writes any more: carries what has arrived, and closes the pipe, whichever
/// process holds its other end.
void AgentPart::take_rest_of_output() {
  for (unsigned which : {0u, 1u})
    while (output_[which] >= 0 && (under_way_ <= most_under_way || abandoned_)) carry_output(which);
}

void AgentPart::obey(const Frame& order) {
  machines::BodyReader reader(order.body);
  switch (order.kind) {
  case Kind::written: {
    under_way_ -= std::min(under_way_, reader.number());
    if (under_way_ <= most_under_way)
      for (unsigned which : {0u, 1u}) watch_output(which, true);
    break;
  }
  case Kind::input:
    if (input_ < 0 || input_ends_) break;
    to_input_.put(input_, order.body);
    input_to_take_ += order.body.size();
    acknowledge_input();
    break;
  case Kind::input_end:
    input_ends_ = true;
    acknowledge_input();
    break;
  case Kind::signal: send_signal(static_cast<int>(reader.number())); break;
  case Kind::closed:
    if (output_[0] < 0) break;
    watch_output(0, false);
    os::close_descriptor(output_[0]);
    output_[0] = -1;
    break;
  case Kind::end:
  case Kind::time_out:
    if (!has_job_) {
      abandon();
      break;
    }
    if (kill_at_ns_ == 0) kill_at_ns_ = os::monotonic_ns() + ranks_until_kill_ns;
    [[fallthrough]];
  case Kind::value:
  case Kind::go_on:
  case Kind::fence_over: to_control_.put(control_, machines::frame(order.kind, order.body)); break;
  default: break;
  }
}

void AgentPart::acknowledge_input() {
  const bool room = to_input_.has_room() || to_input_.broken();
  if (input_to_take_ > 0 && room) {
    say(Kind::taken, input_to_take_);
    input_to_take_ = 0;
  }
  if (!input_ends_ || input_ < 0 || !to_input_.idle()) return;
  os::close_descriptor(input_);
  input_ = -1;
}

void AgentPart::abandon() {
  if (abandoned_) return;
  abandoned_ = true;
  if (!has_job_ && job_ >= 0) {
    os::close_descriptor(job_);
    job_ = -1;
    return;
  }
  obey({Kind::end, {}});
  for (unsigned which : {0u, 1u}) watch_output(which, true); // nobody acknowledges it any more
}

void AgentPart::take_reports() {
  char buffer[4096];
  std::size_t got = 0;
  os::Transfer what = os::Transfer::some;
  while (!control_ended_ && what == os::Transfer::some) {
    what = os::read_some(control_, buffer, sizeof buffer, got);
    if (what != os::Transfer::some) break;
    reports_.feed({buffer, got});
    for (Frame frame; reports_.next(frame);) {
      say_(frame.kind, frame.body);
      if (frame.kind != Kind::outcome) continue;
      reported_ = true;
      kill_at_ns_ = 0; // no rank is left, only their output
    }
  }
  if (control_ended_ || what == os::Transfer::nothing_now) return;
  control_ended_ = true;
  poller_->remove(control_);
}

void AgentPart::send_signal(int signal) {
  if (!ended_) os::send_signal(child_, signal);
}

void AgentPart::reaped(const os::Ending& ending) {
  if (ending.pid != child_) return;
  ended_ = true;
  ending_ = ending;
}

int AgentPart::wait_ms() const {
  constexpr int often_ms = 100, at_most_ms = 1000;
  return kill_at_ns_ == 0 || ended_ ? at_most_ms : often_ms;
}

void AgentPart::check() {
  if (!ended_ && kill_at_ns_ != 0 && os::monotonic_ns() > kill_at_ns_) {
    killed_ = true;
    os::send_signal(child_, SIGKILL);
  }
  if (!ended_) return;
  take_reports();
  // A part that ended well has no report; mpiexec must not wait for more than its output.
  if (!reported_) say_(Kind::outcome, OutcomeReport().body());
  reported_ = true;
  take_rest_of_output();
}

bool AgentPart::is_over() const { return ended_ && (abandoned_ || (output_[0] < 0 && output_[1] < 0)); }

void AgentPart::say_end() {
  if (ending_.by_signal() && !killed_)
    say_(Kind::outcome, report_about_unwatched(ending_.signal(), static_cast<unsigned>(ranks_)).body());
  say(Kind::ended, static_cast<std::uint64_t>(ending_.status()));
}

} // namespace near::launch
