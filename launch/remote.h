// A machine of a job, as mpiexec sees it: its agent, and the ranks there.
#pragma once

#include "launch/agent.h"
#include "launch/connection.h"
#include "launch/outcome.h"
#include "launch/output.h"
#include "machines/frames.h"
#include "machines/hosts.h"
#include "os/poller.h"
#include "os/process.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace near::launch {

/// Where the poller reports the descriptors of one machine.
struct RemoteKeys {
  std::uint64_t agent = 0, errors = 0, input = 0;
};

class Remote {
public:
  explicit Remote(machines::Host named) : host(std::move(named)) {}

  /// Starts the process `words`, which connects its standard streams to an agent on that machine.
  Result start(const std::vector<std::string>& words, os::Poller& poller, const RemoteKeys& keys,
               os::Bell& bell);
  /// Connects the agent's output to that of mpiexec.
  Result connect_output(Output& output);

  /// Sends a frame; does not wait.
  void say(machines::Kind kind, std::string_view body = {});
  void say(machines::Kind kind, std::uint64_t number);
  /// Carries output of the ranks. The agent sends more once room is made: acknowledge().
  void carry(machines::Kind kind, std::string_view bytes);
  void acknowledge();
  /// Closes the ends to mpiexec's output once everything has been written to them. Returns whether they are closed.
  bool close_output();

  /// Standard input for the ranks there, from this pipe.
  Result connect_input(int pipe);
  void carry_input();
  void end_input();
  void input_taken(std::uint64_t bytes);

  machines::Host host;
  Connection connection;
  std::optional<Hello> hello;  ///< once the agent has greeted
  std::vector<unsigned> ranks; ///< that run there
  bool in_fence = false;
  bool failing = false; ///< it has said that its part of the job ends
  bool ended = false;
  int status = 0;       ///< once ended
  os::Pid launcher = 0; ///< there, for tools; 0: not started yet
  std::optional<OutcomeReport> report;

private:
  void watch_input(bool watched);

  os::Poller* poller_ = nullptr;
  RemoteKeys keys_;
  Sink to_output_[2]; ///< standard output and standard error: the reader of one may be slow, or gone
  int output_[2] = {-1, -1};
  std::uint64_t to_acknowledge_ = 0;
  int input_ = -1;
  bool input_watched_ = false;
  std::uint64_t input_under_way_ = 0;
};

} // namespace near::launch
