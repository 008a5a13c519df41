// The agent's process: it greets mpiexec, and carries the messages between
// mpiexec, the part of the job on this machine, and further machines.
#include "launch/agent.h"

#include "launch/agent_part.h"
#include "launch/keys.h"
#include "launch/relay.h"
#include "launch/run.h"
#include "launch/silence.h"
#include "launch/sink.h"
#include "machines/frames.h"
#include "os/affinity.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/limits.h"
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

constexpr std::uint64_t key_orders = 2;      ///< beside key_signals and key_bell
constexpr std::uint64_t key_part = 16;       ///< and the two after it
constexpr std::uint64_t key_relay = 1u << 8; ///< and all after it

class Agent {
public:
  int run();

private:
  Result start();
  static Result greet();
  void take_orders();
  void obey(const Frame& order);
  void take_signals();
  void refuse_orders();
  void lose_connection();
  bool is_over() const;
  void say(Kind kind, std::string_view body = {}) { to_mpiexec_.put(1, machines::frame(kind, body)); }

  os::Poller poller_;
  os::SignalInbox inbox_;
  os::Bell bell_;
  Sink to_mpiexec_;
  machines::FrameReader orders_;
  Silence silence_;
  bool connected_ = true;
  AgentPart part_{[this](Kind kind, std::string_view body) { say(kind, body); }};
  Relay relay_{poller_, key_relay, bell_, [this](Kind kind, std::string_view body) { say(kind, body); }};
  bool said_end_ = false;
};

Result Agent::start() {
  static constexpr int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  os::ignore_signal(SIGPIPE);
  NEAR_TRY(inbox_.open(signals));
  NEAR_TRY(bell_.open());
  NEAR_TRY(poller_.open());
  NEAR_TRY(part_.fork()); // before any thread exists
  NEAR_TRY(greet());
  NEAR_TRY(poller_.add(0, key_orders));
  NEAR_TRY(poller_.add(inbox_.descriptor(), key_signals));
  NEAR_TRY(poller_.add(bell_.descriptor(), key_bell));
  NEAR_TRY(to_mpiexec_.start(bell_));
  return part_.start(poller_, key_part, bell_);
}

Result Agent::greet() {
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

void Agent::obey(const Frame& order) {
  machines::BodyReader reader(order.body);
  switch (order.kind) {
  case Kind::job: {
    AgentJob job;
    if (part_.has_job() || !AgentJob::read(order.body, job)) {
      refuse_orders();
      break;
    }
    silence_.set_limit(job.lost_after);
    part_.give(job, order.body);
    break;
  }
  case Kind::signal:
    if (const std::uint64_t signal = reader.number(); signal == SIGTSTP || signal == SIGCONT)
      silence_.expect(signal == SIGTSTP);
    [[fallthrough]];
  default:
    if (!Relay::takes(order.kind))
      part_.obey(order);
    else if (!relay_.obey(order))
      refuse_orders();
    break;
  }
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
  for (Frame frame; connected_ && orders_.next(frame);) obey(frame);
  if (orders_.broken()) refuse_orders();
}

/// For orders that are damaged, or come from something other than mpiexec.
void Agent::refuse_orders() {
  (void)base::fail(base::Code::invalid, "standard input is not that of an agent");
  (void)complain(1);
  lose_connection();
}

/// For when mpiexec has gone, or cannot be reached: the ranks on this machine and on those behind it are ended.
void Agent::lose_connection() {
  if (!connected_) return;
  connected_ = false;
  poller_.remove(0);
  relay_.abandon();
  part_.abandon();
}

void Agent::take_signals() {
  os::Pid sender = 0;
  while (const int signal = inbox_.take(sender)) {
    if (signal != SIGCHLD) {
      part_.send_signal(signal);
      continue;
    }
    os::Ending ending;
    bool none_left = false;
    while (os::reap(ending, none_left)) {
      part_.reaped(ending);
      relay_.reaped(ending);
    }
  }
}

bool Agent::is_over() const {
  return connected_ ? said_end_ && relay_.is_over() && to_mpiexec_.idle() : part_.is_over();
}

int Agent::run() {
  if (!start().ok()) return complain(1);
  std::vector<std::uint64_t> keys;
  while (!is_over()) {
    poller_.wait(std::min({silence_.wait_ms(), part_.wait_ms(), relay_.wait_ms()}), keys);
    for (const std::uint64_t key : keys) {
      switch (key) {
      case key_orders: take_orders(); break;
      case key_signals: take_signals(); break;
      case key_bell:
        bell_.quiet();
        part_.bell_rang();
        if (to_mpiexec_.broken()) lose_connection();
        break;
      default:
        if (key >= key_relay)
          relay_.dispatch(key);
        else
          part_.dispatch(key - key_part);
        break;
      }
    }
    if (silence_.must_speak()) say(Kind::alive);
    if (silence_.is_too_long()) lose_connection();
    part_.check();
    relay_.check();
    if (!part_.is_over() || said_end_) continue;
    part_.say_end();
    said_end_ = true;
  }
  return connected_ ? 0 : 1;
}

} // namespace

int run_agent() {
  Agent& agent = *new Agent; // never destroyed: its threads may be waiting for a reader
  return agent.run();
}

} // namespace near::launch
