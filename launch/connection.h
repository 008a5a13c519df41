// The connection to the agent of a machine: the process that reaches
// it (ssh, srun), and frames over that process's standard streams.
#pragma once

#include "base/result.h"
#include "launch/silence.h"
#include "launch/sink.h"
#include "machines/frames.h"
#include "os/poller.h"
#include "os/process.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::launch {

using base::Result;

class Connection {
public:
  /// The keys for the agent's messages, and for what ssh or srun itself prints.
  struct Keys {
    std::uint64_t agent = 0, errors = 0;
  };

  /// Starts the process `words` in this folder (empty: in this process's folder). It connects its standard streams to an agent.
  Result start(const std::vector<std::string>& words, const std::string& directory, os::Poller& poller,
               const Keys& keys, os::Bell& bell);

  /// Sends frames; does not wait.
  void put(std::string_view frames);
  /// Reads what the agent has sent. Returns false if the connection has ended, or leads to no agent: see failure().
  bool read(std::vector<machines::Frame>& frames);
  /// Reads what ssh or srun itself has printed.
  void read_errors();
  /// Announces that nothing more follows, once everything has been sent; the agent then ends. Repeat the call until it is done.
  void hang_up();
  /// Ends ssh or srun.
  void kill();
  /// Notes that a child of this process has ended. Returns whether it was ssh or srun.
  bool reaped(const os::Ending& ending);

  /// Sends a sign of life if nothing has been sent for a second.
  void keep_alive();
  /// Why the machine cannot be reached, or no longer can; "" if it can.
  std::string failure(std::uint64_t now_ns);
  /// The longest time to wait before the next call of these two.
  int wait_ms() const;

  bool is_connected() const { return from_ >= 0; }
  bool is_over() const { return from_ < 0 && starter_ == 0; }
  /// Sets how many seconds of silence are too long; 0: no limit.
  void set_limit(std::uint64_t seconds) { silence_.set_limit(seconds); }

private:
  std::string complaint() const;

  os::Poller* poller_ = nullptr;
  os::Pid starter_ = 0; ///< ssh or srun; 0: it has ended
  os::Ending starter_ending_;
  std::string program_; ///< name of the starter, for messages
  int to_ = -1, from_ = -1, errors_ = -1;
  Sink to_agent_;
  machines::FrameReader frames_;
  bool greeted_ = false;
  std::string printed_;        ///< by the starter
  std::uint64_t ended_ns_ = 0; ///< when the connection ended
  Silence silence_;
};

} // namespace near::launch
