// The agent's process: it greets mpiexec, forks the process that starts the ranks, and carries what both say.
#include "launch/agent.h"

#include "launch/job.h"
#include "launch/outcome.h"
#include "launch/run.h"
#include "launch/silence.h"
#include "launch/sink.h"
#include "machines/frames.h"
#include "os/affinity.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/limits.h"
#include "os/memory.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/signals.h"
#include "topo/slots.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace near::launch {
namespace {

using machines::Frame;
using machines::Kind;

constexpr std::uint64_t key_orders = 1, key_signals = 2, key_bell = 3, key_control = 4,
                        key_output = 5; // 5 and 6
/// So much output may be under way to mpiexec.
constexpr std::uint64_t most_under_way = 1u << 20;
/// A part that was told to end, and has not after this time, is killed.
constexpr std::uint64_t until_kill_ns = 3'000'000'000;

class Agent {
public:
  int run();

private:
  Result greet();
  Result await_job(AgentJob& job);
  Result start(const AgentJob& job);
  void loop();
  void take_orders();
  void obey(const Frame& order);
  void take_signals();
  void take_reports();
  void carry_output(unsigned which);
  void watch_output(unsigned which, bool watched);
  void take_rest_of_output();
  void acknowledge_input();
  void lose_connection();
  void say(Kind kind, std::string_view body = {}) { to_mpiexec_.put(1, machines::frame(kind, body)); }
  void say(Kind kind, std::uint64_t number) { say(kind, machines::BodyWriter().number(number).body()); }

  os::Poller poller_;
  os::SignalInbox inbox_;
  os::Bell bell_;
  // One thread each, since any of the readers may be slow.
  Sink to_mpiexec_, to_control_, to_input_;
  machines::FrameReader orders_;
  machines::FrameReader reports_;
  Silence silence_;
  bool connected_ = true;

  os::Pid child_ = 0;
  bool ended_ = false;
  os::Ending ending_;
  std::uint64_t kill_at_ns_ = 0; ///< 0: not planned
  bool killed_ = false;          ///< by this agent
  bool reported_ = false;        ///< mpiexec knows that no rank is left
  int control_ = -1;
  bool control_ended_ = false;
  int input_ = -1;
  bool input_ends_ = false;
  std::uint64_t input_to_take_ = 0; ///< bytes that are not acknowledged
  int output_[2] = {-1, -1};
  bool watched_[2] = {false, false};
  std::uint64_t under_way_ = 0;
};

Result Agent::greet() {
  static constexpr int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  os::ignore_signal(SIGPIPE);
  NEAR_TRY(inbox_.open(signals));
  NEAR_TRY(bell_.open());
  NEAR_TRY(poller_.open());
  NEAR_TRY(poller_.add(0, key_orders));
  Hello hello;
  hello.protocol = machines::protocol_version;
  hello.version = NEAR_VERSION;
  hello.name = os::machine_name();
  os::CpuSet affinity;
  NEAR_TRY(os::affinity_of(0, affinity));
  hello.slots = topo::count_slots(affinity, os::read_limits()).count;
  const std::string greeting = std::string(machines::greeting) + machines::frame(Kind::hello, hello.body());
  return os::write_all(1, greeting.data(), greeting.size());
}

/// Waits for the job; no thread exists yet, so that start() can fork.
Result Agent::await_job(AgentJob& job) {
  std::vector<std::uint64_t> keys;
  for (Frame frame;;) {
    char buffer[1 << 16];
    std::size_t got = 0;
    poller_.wait(silence_.wait_ms(), keys);
    if (silence_.must_speak()) {
      const std::string alive = machines::frame(Kind::alive);
      NEAR_TRY(os::write_all(1, alive.data(), alive.size()));
    }
    if (silence_.is_too_long()) return base::fail(base::Code::gone, "mpiexec is silent");
    if (keys.empty()) continue;
    if (os::read_some(0, buffer, sizeof buffer, got) != os::Transfer::some)
      return base::fail(base::Code::gone, "mpiexec has gone before it sent the job");
    silence_.heard();
    orders_.feed({buffer, got});
    while (orders_.next(frame)) {
      if (frame.kind == Kind::end) return base::fail(base::Code::gone, "the job has ended before it began");
      if (frame.kind == Kind::signal) obey(frame);
      if (frame.kind != Kind::job) continue;
      if (!AgentJob::read(frame.body, job)) return base::fail(base::Code::invalid, "mpiexec sent no job");
      silence_.set_limit(job.lost_after);
      return {};
    }
    if (orders_.broken()) return base::fail(base::Code::invalid, "standard input is not that of an agent");
  }
}

Result Agent::start(const AgentJob& job) {
  int input_from = -1, control_to = -1;
  int output_to[2] = {-1, -1};
  if (job.has_input)
    NEAR_TRY(os::make_input_pipe(input_from, input_));
  else
    NEAR_TRY(os::open_null(input_from));
  for (int which : {0, 1}) NEAR_TRY(os::make_pipe(output_[which], output_to[which]));
  NEAR_TRY(os::make_sockets(control_, control_to));
  NEAR_TRY(os::fork_process(child_));
  if (child_ == 0) {
    os::redirect(input_from, output_to[0], output_to[1]);
    for (int kept_by_parent : {input_, output_[0], output_[1], control_})
      os::close_descriptor(kept_by_parent);
    const int status = run_part(job, control_to);
    std::fflush(nullptr);
    _exit(status);
  }
  for (int of_child : {input_from, output_to[0], output_to[1], control_to}) os::close_descriptor(of_child);
  NEAR_TRY(to_mpiexec_.start(bell_));
  NEAR_TRY(to_control_.start(bell_));
  if (input_ >= 0) NEAR_TRY(to_input_.start(bell_));
  NEAR_TRY(poller_.add(inbox_.descriptor(), key_signals));
  NEAR_TRY(poller_.add(bell_.descriptor(), key_bell));
  NEAR_TRY(poller_.add(control_, key_control));
  for (unsigned which : {0u, 1u}) watch_output(which, true);
  say(Kind::started, static_cast<std::uint64_t>(child_));
  return {};
}

void Agent::watch_output(unsigned which, bool watched) {
  if (output_[which] < 0 || watched_[which] == watched) return;
  watched_[which] = watched;
  if (watched)
    (void)poller_.add(output_[which], key_output + which);
  else
    poller_.remove(output_[which]);
}

void Agent::carry_output(unsigned which) {
  if (output_[which] < 0) return;
  char buffer[1 << 16];
  std::size_t got = 0;
  switch (os::read_some(output_[which], buffer, sizeof buffer, got)) {
  case os::Transfer::some:
    say(which == 0 ? Kind::output : Kind::error, {buffer, got});
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

/// Once the child has ended no rank writes any more: what has arrived is carried, and the pipe is closed, whoever
/// holds its other end.
void Agent::take_rest_of_output() {
  for (unsigned which : {0u, 1u})
    while (output_[which] >= 0 && (under_way_ <= most_under_way || !connected_)) carry_output(which);
}

void Agent::obey(const Frame& order) {
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
  case Kind::signal: {
    const int signal = static_cast<int>(reader.number());
    if (signal == SIGTSTP || signal == SIGCONT) silence_.expect(signal == SIGTSTP);
    if (child_ != 0 && !ended_) os::send_signal(child_, signal);
    break;
  }
  case Kind::closed:
    if (output_[0] < 0) break;
    watch_output(0, false);
    os::close_descriptor(output_[0]);
    output_[0] = -1;
    break;
  case Kind::end:
  case Kind::time_out:
    if (kill_at_ns_ == 0) kill_at_ns_ = os::monotonic_ns() + until_kill_ns;
    [[fallthrough]];
  case Kind::value:
  case Kind::fence_over: to_control_.put(control_, machines::frame(order.kind, order.body)); break;
  default: break;
  }
}

void Agent::acknowledge_input() {
  const bool room = to_input_.has_room() || to_input_.broken();
  if (input_to_take_ > 0 && room) {
    say(Kind::taken, input_to_take_);
    input_to_take_ = 0;
  }
  if (!input_ends_ || input_ < 0 || !to_input_.idle()) return;
  os::close_descriptor(input_);
  input_ = -1;
}

void Agent::take_orders() {
  char buffer[1 << 16];
  std::size_t got = 0;
  const os::Transfer what = os::read_some(0, buffer, sizeof buffer, got);
  if (what == os::Transfer::nothing_now) return;
  if (what != os::Transfer::some) {
    lose_connection();
    return;
  }
  silence_.heard();
  orders_.feed({buffer, got});
  for (Frame frame; orders_.next(frame);) obey(frame);
  if (orders_.broken()) lose_connection();
}

/// mpiexec has gone, or cannot be reached: the ranks of this machine are ended.
void Agent::lose_connection() {
  if (!connected_) return;
  connected_ = false;
  poller_.remove(0);
  obey({Kind::end, {}});
  for (unsigned which : {0u, 1u}) watch_output(which, true); // nobody says any more that it is out
}

void Agent::take_reports() {
  char buffer[4096];
  std::size_t got = 0;
  os::Transfer what = os::Transfer::some;
  while (!control_ended_ && what == os::Transfer::some) {
    what = os::read_some(control_, buffer, sizeof buffer, got);
    if (what != os::Transfer::some) break;
    reports_.feed({buffer, got});
    for (Frame frame; reports_.next(frame);) {
      say(frame.kind, frame.body);
      if (frame.kind != Kind::outcome) continue;
      reported_ = true;
      kill_at_ns_ = 0; // no rank is left, only their output
    }
  }
  if (control_ended_ || what == os::Transfer::nothing_now) return;
  control_ended_ = true;
  poller_.remove(control_);
}

void Agent::take_signals() {
  os::Pid sender = 0;
  while (const int signal = inbox_.take(sender)) {
    if (signal != SIGCHLD) {
      if (!ended_) os::send_signal(child_, signal);
      continue;
    }
    os::Ending ending;
    bool none_left = false;
    while (os::reap(ending, none_left)) {
      if (ending.pid != child_) continue;
      ended_ = true;
      ending_ = ending;
    }
  }
}

void Agent::loop() {
  std::vector<std::uint64_t> keys;
  while (!ended_ || (connected_ && (output_[0] >= 0 || output_[1] >= 0))) {
    constexpr int often_ms = 100;
    poller_.wait(kill_at_ns_ == 0 ? silence_.wait_ms() : std::min(silence_.wait_ms(), often_ms), keys);
    for (const std::uint64_t key : keys) {
      switch (key) {
      case key_orders: take_orders(); break;
      case key_signals: take_signals(); break;
      case key_control: take_reports(); break;
      case key_bell:
        bell_.quiet();
        acknowledge_input();
        if (to_mpiexec_.broken()) lose_connection();
        break;
      default: carry_output(static_cast<unsigned>(key - key_output)); break;
      }
    }
    if (silence_.must_speak()) say(Kind::alive);
    if (silence_.is_too_long()) lose_connection();
    if (!ended_ && kill_at_ns_ != 0 && os::monotonic_ns() > kill_at_ns_) {
      killed_ = true;
      os::send_signal(child_, SIGKILL);
    }
    if (ended_) {
      take_reports();
      // A part that ended well has no report; mpiexec must not wait for more than its output.
      if (!reported_) say(Kind::outcome, OutcomeReport().body());
      reported_ = true;
      take_rest_of_output();
    }
  }
}

int Agent::run() {
  AgentJob job;
  if (!greet().ok() || !await_job(job).ok() || !start(job).ok()) return complain(1);
  loop();
  if (!connected_) return 1;
  if (ending_.by_signal() && !killed_)
    say(Kind::outcome,
        report_about_unwatched(ending_.signal(), static_cast<unsigned>(job.ranks.size())).body());
  say(Kind::ended, static_cast<std::uint64_t>(ending_.status()));
  std::vector<std::uint64_t> keys;
  while (!to_mpiexec_.idle() && !silence_.is_too_long()) {
    poller_.wait(silence_.wait_ms(), keys);
    bell_.quiet();
    take_orders();
  }
  return 0;
}

} // namespace

int run_agent() {
  Agent& agent = *new Agent; // never destroyed: its threads may be waiting for a reader
  return agent.run();
}

} // namespace near::launch
