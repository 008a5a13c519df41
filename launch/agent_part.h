// The part of a job that runs on the machine of an agent: the process that plans and starts the ranks there, and the pipes and
// sockets between it and the agent.
//
//   agent  --- job, input, orders --->  front end --- supervisor --- ranks
//          <-- output, reports -------
#pragma once

#include "base/result.h"
#include "launch/agent.h"
#include "launch/sink.h"
#include "machines/frames.h"
#include "os/poller.h"
#include "os/process.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace near::launch {

using base::Result;

class AgentPart {
public:
  /// Sends a frame to mpiexec.
  using Say = std::function<void(machines::Kind, std::string_view)>;
  explicit AgentPart(Say say) : say_(std::move(say)) {}

  /// Forks the process, which waits for the job. Precondition: the caller has no threads yet.
  Result fork();
  /// Begins to carry the process's messages; it uses `key` and the two keys after it.
  Result start(os::Poller& poller, std::uint64_t key, os::Bell& bell);
  /// Passes the job to the process.
  void give(const AgentJob& job, std::string_view body);
  /// Carries out an order from mpiexec.
  void obey(const machines::Frame& order);
  /// Ends the process, since mpiexec has gone; its messages are no longer passed on.
  void abandon();

  /// Handles an event that the poller has reported under that key, counted from the first one.
  void dispatch(std::uint64_t key);
  void bell_rang() { acknowledge_input(); }
  void send_signal(int signal);
  void reaped(const os::Ending& ending);
  /// Call after each wait for events.
  void check();
  /// The longest time to wait before the next check.
  int wait_ms() const;

  bool has_job() const { return has_job_; }
  /// Whether the process has ended, and its output has been carried.
  bool is_over() const;
  /// Reports how the process has ended; nothing more is sent afterwards.
  void say_end();

private:
  static constexpr std::uint64_t key_control = 0, key_output = 1; // 1 and 2

  [[noreturn]] void run(int job, int control);
  void say(machines::Kind kind, std::uint64_t number);
  void take_reports();
  void carry_output(unsigned which);
  void watch_output(unsigned which, bool watched);
  void take_rest_of_output();
  void acknowledge_input();

  const Say say_;
  os::Poller* poller_ = nullptr;
  std::uint64_t key_ = 0;
  // One thread for each, since any of the readers may be slow.
  Sink to_control_, to_input_;
  machines::FrameReader reports_;
  bool abandoned_ = false;

  os::Pid child_ = 0;
  bool has_job_ = false;
  std::size_t ranks_ = 0;
  bool ended_ = false;
  os::Ending ending_;
  std::uint64_t kill_at_ns_ = 0; ///< 0: not planned
  bool killed_ = false;          ///< by this agent
  bool reported_ = false;        ///< mpiexec knows that no rank is left
  int job_ = -1;                 ///< to which the job is written
  int control_ = -1;
  bool control_ended_ = false;
  int input_ = -1;
  bool input_ends_ = false;
  std::uint64_t input_to_take_ = 0; ///< bytes not yet acknowledged
  int output_[2] = {-1, -1};
  bool watched_[2] = {false, false};
  std::uint64_t under_way_ = 0;
};

} // namespace near::launch
