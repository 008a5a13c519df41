// The connection to the agent of a machine: the process that reaches it (ssh, srun), and frames over the standard streams of that.
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
  /// Where the poller reports what the agent sends, and what ssh or srun itself prints.
  struct Keys {
    std::uint64_t agent = 0, errors = 0;
  };

  /// Starts the process `words` in this folder (empty: in that of this process). It connects its standard streams to an agent.
  Result start(const std::vector<std::string>& words, const std::string& directory, os::Poller& poller,
               const Keys& keys, os::Bell& bell);

  /// Sends frames; does not wait.
  void put(std::string_view frames);
  /// Reads what the agent has sent. Returns false if the connection has ended, or is no agent's: see failure().
  bool read(std::vector<machines::Frame>& frames);
  /// Reads what ssh or srun itself has printed.
  void read_errors();
  /// Says that nothing more follows, once everything has been sent; the agent ends then. To be repeated until it is.
  void hang_up();
  /// Ends ssh or srun.
  void kill();
  /// Notes that a child of this process has ended. Returns whether it was ssh or srun.
  bool reaped(const os::Ending& ending);

  /// Says something if nothing has been said for a second, so that the agent knows that somebody is there.
  void keep_alive();
  /// Why the machine cannot be reached, or not any more, in words; "" while it can.
  std::string failure(std::uint64_t now_ns);
  /// For how long to wait at most before the next call of these two.
  int wait_ms() const;

  bool is_connected() const { return from_ >= 0; }
  bool is_over() const { return from_ < 0 && starter_ == 0; }
  /// How many seconds of silence are too long; 0: none are.
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
  std::uint64_t ended_ns_ = 0; ///< when the connection has ended
  Silence silence_;
};

} // namespace near::launch
