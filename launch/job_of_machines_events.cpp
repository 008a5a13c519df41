// What happens while a job on several machines runs: the messages of the agents.
#include "launch/job_of_machines.h"

#include "base/text.h"
#include "launch/keys.h"
#include "machines/tree.h"
#include "os/affinity.h"
#include "os/clock.h"
#include "os/signals.h"

#include <algorithm>
#include <csignal>

namespace near::launch {

using machines::BodyReader;
using machines::BodyWriter;
using machines::Frame;
using machines::Kind;

void JobOfMachines::dispatch(std::uint64_t key) {
  if (key >= key_streams) {
    output_.readable(key - key_streams);
  } else if (key >= key_agent_input) {
    machines_[key - key_agent_input]->carry_input();
  } else if (key >= key_agent_errors) {
    machines_[key - key_agent_errors]->read_errors();
  } else if (key >= key_agents) {
    take_frames(static_cast<unsigned>(key - key_agents));
  } else if (key == key_signals) {
    take_signals();
  } else if (key == key_bell) {
    output_.bell_rang();
    for (const auto& remote : machines_) remote->acknowledge();
  }
}

void JobOfMachines::take_frames(unsigned machine) {
  std::vector<Frame> frames;
  machines_[machine]->read(frames); // check_connections() notices its end
  for (const auto& frame : frames) take(machine, frame);
}

void JobOfMachines::take(unsigned machine, const Frame& frame) {
  Remote& remote = *machines_[machine];
  BodyReader reader(frame.body);
  switch (frame.kind) {
  case Kind::hello: greet(machine, frame); break;
  case Kind::output:
  case Kind::error: remote.carry(frame.kind, frame.body); break;
  case Kind::taken: remote.input_taken(reader.number()); break;
  case Kind::put: {
    const std::string key = reader.text();
    table_[key] = reader.text();
    break;
  }
  case Kind::get: answer_get(remote, frame); break;
  case Kind::fence: enter_fence(machine); break;
  case Kind::failed:
    remote.failing = true;
    if (state_ == State::running) {
      state_ = State::ending;
      end_all(Kind::end);
    }
    break;
  case Kind::outcome:
    if (OutcomeReport report; OutcomeReport::read(frame.body, report)) {
      remote.report = report;
      if (!report.sentence.empty() || report.told) decide(std::move(report));
    }
    break;
  case Kind::relayed:
  case Kind::parted: take_from_behind(machine, frame); break;
  case Kind::started: remote.launcher = static_cast<os::Pid>(reader.number()); break;
  case Kind::processes:
    if (machines::Processes processes; machines::Processes::read(frame.body, processes))
      part_started(machine, processes);
    break;
  case Kind::ended: part_ended(machine, static_cast<int>(reader.number() & 0xff)); break;
  default: break;
  }
}

/// Handles a frame from, or about, a machine that is reached through this one.
void JobOfMachines::take_from_behind(unsigned machine, const Frame& frame) {
  machines::Relayed relayed;
  machines::Parted parted;
  const bool read = frame.kind == Kind::relayed ? machines::Relayed::read(frame.body, relayed)
                                                : machines::Parted::read(frame.body, parted);
  const unsigned behind = frame.kind == Kind::relayed ? relayed.machine : parted.machine;
  if (!read || behind >= machines_.size() || machines_[behind]->nearer() != machines_[machine].get()) {
    lose(machine, "what it sends is damaged");
    return;
  }
  if (!machines_[behind]->is_connected()) return; // it has been given up
  if (frame.kind == Kind::relayed)
    take(behind, relayed.frame);
  else
    machines_[behind]->part(base::printable(parted.why));
}

void JobOfMachines::greet(unsigned machine, const Frame& frame) {
  Remote& remote = *machines_[machine];
  Hello hello;
  if (!Hello::read(frame.body, hello) || hello.protocol != machines::protocol_version ||
      hello.version != NEAR_VERSION) {
    lose(machine,
         base::format("NearMPI {} is installed there, and {} here; the same version must be installed "
                      "on every machine",
                      hello.version.empty() ? "of another version" : base::printable(hello.version),
                      NEAR_VERSION));
    return;
  }
  remote.hello = std::move(hello);
  reach_from(machine);
  const bool all = std::all_of(machines_.begin(), machines_.end(),
                               [](const auto& each) { return each->hello.has_value(); });
  if (!all || state_ != State::greeting) return;
  if (!send_jobs().ok()) decide(report_about_job(std::string(base::failure_text()), 1));
}

/// Asks the next machine to explain its part: one after another, so that their texts do not mix.
void JobOfMachines::explain_next() {
  if (explained_ == parts_.size()) return;
  const unsigned machine = parts_[explained_++];
  Remote& remote = *machines_[machine];
  remote.carry(Kind::output, base::format("machine {}: {}\n", remote.host.name, ranks_text(remote)));
  remote.say(Kind::job, job_for(machine).body());
}

void JobOfMachines::answer_get(Remote& remote, const Frame& frame) {
  const std::string key = BodyReader(frame.body).text();
  const auto found = table_.find(key);
  BodyWriter answer;
  answer.text(key).number(found != table_.end()).text(found == table_.end() ? "" : found->second);
  remote.say(Kind::value, answer.body());
}

void JobOfMachines::enter_fence(unsigned machine) {
  machines_[machine]->in_fence = true;
  const bool all =
      std::all_of(parts_.begin(), parts_.end(), [&](unsigned part) { return machines_[part]->in_fence; });
  if (all)
    for (const unsigned part : parts_) {
      machines_[part]->in_fence = false;
      machines_[part]->say(Kind::fence_over);
    }
  check_fences();
}

/// Ranks that wait for all others, in MPI_Init or MPI_Finalize, wait forever if others have ended.
void JobOfMachines::check_fences() {
  if (state_ != State::running) return;
  const Remote *waiting = nullptr, *gone = nullptr;
  for (const unsigned part : parts_) {
    if (machines_[part]->ended)
      gone = machines_[part].get();
    else if (machines_[part]->in_fence)
      waiting = machines_[part].get();
  }
  if (waiting == nullptr || gone == nullptr) return;
  decide(report_about_job(
      base::format("{} on {} ended without calling MPI_Init or MPI_Finalize, where {} on {} {} for the "
                   "whole job",
                   ranks_text(*gone), gone->host.name, ranks_text(*waiting), waiting->host.name,
                   waiting->ranks.size() == 1 ? "waits" : "wait"),
      1));
}

void JobOfMachines::part_ended(unsigned machine, int status) {
  Remote& remote = *machines_[machine];
  remote.ended = true;
  remote.status = status;
  remote.end_input();
  if (command_.explain && status == 0) explain_next();
  // If the part did not even start, it has printed why: there is no report.
  if (status != 0 && state_ == State::running) {
    state_ = State::ending;
    end_all(Kind::end);
  }
  check_fences();
}

std::string JobOfMachines::ranks_text(const Remote& remote) { return ranks_text(remote.ranks); }

std::string JobOfMachines::ranks_text(const std::vector<unsigned>& ranks) {
  os::CpuSet numbers;
  for (const unsigned rank : ranks) numbers.add(rank);
  return (ranks.size() == 1 ? "rank " : "ranks ") + numbers.text();
}

int JobOfMachines::run() {
  std::vector<std::uint64_t> keys;
  while (!finished()) {
    const int output_ms = output_.tick(os::monotonic_ns());
    constexpr int often_ms = 20, at_most_ms = 1000;
    int wait_ms = state_ == State::running ? at_most_ms : often_ms;
    for (const auto& remote : machines_) wait_ms = std::min(wait_ms, remote->wait_ms());
    if (output_ms >= 0) wait_ms = std::min(wait_ms, output_ms);
    const std::uint64_t before = os::monotonic_ns();
    if (time_out_ns_ > before && !timed_out_)
      wait_ms = std::min<int>(
          wait_ms, static_cast<int>(std::min<std::uint64_t>((time_out_ns_ - before) / 1'000'000 + 1, 1000)));
    poller_.wait(wait_ms, keys);
    for (const std::uint64_t key : keys) dispatch(key);
    const std::uint64_t now = os::monotonic_ns();
    for (const auto& remote : machines_) remote->keep_alive();
    check_connections(now);
    check_time(now);
    check_output();
  }
  return status();
}

} // namespace near::launch
