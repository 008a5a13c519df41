// mpiexec's side of a job on several machines.
//
//            all agents have greeted        a machine fails, a signal, --timeout
//   greeting ----------------------> running ---------------------------------> ending
//      |                                |                                          |
//      +--- a machine cannot be reached +--- every part has ended                  +--- every part has ended, or has not in time
//                                       v                                          v
//                                    draining: the rest of the output -----------> the end
#pragma once

#include "launch/command.h"
#include "launch/input.h"
#include "launch/outcome.h"
#include "launch/output.h"
#include "launch/remote.h"
#include "os/poller.h"
#include "os/signals.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace near::launch {

class JobOfMachines {
public:
  JobOfMachines(const Command& command, std::vector<std::string> arguments)
      : command_(command), arguments_(std::move(arguments)) {}
  /// Starts an agent on each machine.
  Result start();
  /// Runs the job to its end. Returns the exit status of mpiexec.
  int run();

private:
  enum class State { greeting, running, ending, draining };

  // job_of_machines.cpp: the beginning
  bool by_shell(const machines::Host& host) const;
  std::vector<std::string> words_for(const machines::Host& host, const std::string& program) const;
  void name_machines();
  Result reach_machines();
  void reach_from(unsigned machine);
  std::vector<std::string> agent_words(const machines::Host& host) const;
  Result distribute();
  Result send_jobs();
  AgentJob job_for(unsigned machine) const;
  void part_started(unsigned machine, const machines::Processes& processes);
  void publish();
  void tell_debugger_of_all();

  // job_of_machines_events.cpp: what happens while it runs
  void dispatch(std::uint64_t key);
  void take_frames(unsigned machine);
  void take(unsigned machine, const machines::Frame& frame);
  void take_from_behind(unsigned machine, const machines::Frame& frame);
  void greet(unsigned machine, const machines::Frame& frame);
  void answer_get(Remote& remote, const machines::Frame& frame);
  void enter_fence(unsigned machine);
  void part_ended(unsigned machine, int status);
  void check_fences();
  void explain_next();

  // job_of_machines_end.cpp: how it ends
  void take_signals();
  void interrupt(int signal);
  void pass_on(int signal);
  void check_connections(std::uint64_t now_ns);
  void check_time(std::uint64_t now_ns);
  void check_output();
  void lose(unsigned machine, std::string why);
  /// By machine: whether its connection is still needed, for the machine itself or for machines behind it.
  std::vector<bool> needed() const;
  /// Decides that the job ends, with this report. The first report counts, unless a later one explains more.
  void decide(OutcomeReport report);
  /// `signal` is sent to the ranks, which have time to react to it; 0: they end at once.
  void end_all(machines::Kind how, int signal = 0);
  bool all_ended() const;
  bool finished();
  void print_outcome();
  int status() const;
  static std::string ranks_text(const Remote& remote);
  static std::string ranks_text(const std::vector<unsigned>& ranks);

  const Command command_;
  const std::vector<std::string> arguments_;
  os::Poller poller_;
  os::SignalInbox inbox_;
  Output output_;
  Input input_;
  std::vector<std::unique_ptr<Remote>> machines_;
  std::map<unsigned, unsigned> behind_;            ///< a machine, and the one through which it is reached
  std::vector<std::vector<unsigned>> programs_on_; ///< machines of each program; empty: all
  std::vector<unsigned> application_of_;           ///< by rank
  std::vector<unsigned> machine_of_;               ///< by rank
  std::vector<unsigned> parts_;                    ///< the machines that have ranks
  std::map<std::string, std::string> table_;
  std::map<unsigned, machines::Processes> processes_; ///< of each machine whose ranks have been started

  State state_ = State::greeting;
  bool decided_ = false;
  OutcomeReport outcome_;
  int interrupted_by_ = 0;           ///< the signal to mpiexec from a user or a batch system; 0: none
  std::uint64_t interrupted_ns_ = 0; ///< when
  bool printed_ = false;
  bool timed_out_ = false;
  bool drop_output_ = false;
  bool stdout_closed_ = false;
  std::size_t explained_ = 0;     ///< parts that have been asked to explain
  std::uint64_t time_out_ns_ = 0; ///< 0: no limit
  std::uint64_t give_up_ns_ = 0;  ///< when unread output is dropped; 0: not
  std::uint64_t kill_at_ns_ = 0;  ///< 0: not planned
};

} // namespace near::launch
