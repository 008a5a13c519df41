// A machine of a job, from mpiexec's point of view: its agent, and the ranks there.
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
  /// From now on the agent is reached through another machine. `number` is this machine's number.
  Result start_behind(Remote& nearer, unsigned number, os::Poller& poller, const RemoteKeys& keys,
                      os::Bell& bell);
  /// Makes that machine start its agent.
  void be_reached(const std::vector<std::string>& words, const std::string& directory, unsigned lost_after);
  /// Connects the agent's output to that of mpiexec.
  Result connect_output(Output& output);

  /// Sends a frame; does not wait.
  void say(machines::Kind kind, std::string_view body = {});
  void say(machines::Kind kind, std::uint64_t number);
  /// Reads what has arrived from the agent, or from the process that reaches it.
  void read(std::vector<machines::Frame>& frames) { (void)connection_.read(frames); }
  void read_errors() { connection_.read_errors(); }
  /// Announces that nothing more follows; the agent then ends. Repeat the call until it is done.
  void hang_up();
  /// Ends the connection.
  void kill();
  /// Records that the machine through which this one is reached has reported that nothing more comes, for this reason.
  void part(std::string why);
  bool reaped(const os::Ending& ending) { return connection_.reaped(ending); }
  void keep_alive() { connection_.keep_alive(); }
  /// As Connection::failure().
  std::string failure(std::uint64_t now_ns);
  int wait_ms() const { return connection_.wait_ms(); }
  bool is_connected() const { return nearer_ == nullptr ? connection_.is_connected() : linked_; }
  void set_limit(std::uint64_t seconds) { connection_.set_limit(seconds); }
  /// The machine through which this one is reached; null: mpiexec's own.
  Remote* nearer() const { return nearer_; }
  bool is_behind(const Remote& other) const;
  /// Carries output of the ranks. The agent sends more once there is room again: acknowledge().
  void carry(machines::Kind kind, std::string_view bytes);
  void acknowledge();
  /// Closes the ends to mpiexec's output once everything has been written to them. Returns whether they are closed.
  bool close_output();

  /// Connects this pipe to the standard input of the ranks there.
  Result connect_input(int pipe);
  void carry_input();
  void end_input();
  void input_taken(std::uint64_t bytes);

  machines::Host host;
  std::optional<Hello> hello;  ///< once the agent has greeted
  std::vector<unsigned> ranks; ///< the ranks that run there
  bool in_fence = false;
  bool failing = false; ///< the machine has reported that its part of the job ends
  bool ended = false;
  int status = 0;       ///< once ended
  os::Pid launcher = 0; ///< there, for tools; 0: not started yet
  std::optional<OutcomeReport> report;

private:
  Result start_output(os::Poller& poller, const RemoteKeys& keys, os::Bell& bell);
  void watch_input(bool watched);

  Connection connection_; ///< used if the machine is reached directly
  Remote* nearer_ = nullptr;
  unsigned number_ = 0;
  bool linked_ = false; ///< an agent has been asked to reach it, and has not reported that nothing more comes
  bool hung_up_ = false;
  std::string why_; ///< why nothing more comes
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
