// The working half of mpiexec: starts the ranks, carries their output, notices how each rank ends, and ends
// the job. It is the parent of every rank and the subreaper of every process that a rank starts.
// doc/launcher.md argues that no process is left behind, whichever dies.
//
//              decide(), or every rank has ended      Timer::terminate          Timer::kill
//   running ------------------------------------> ending ---------> terminating ----------> killing --+
//      |                                            |                   |                   |  ^      | Timer::kill,
//      |                                            |                   |                   |  +------+ again and again
//      +--------------------------------------------+--- killing at once: a second interrupt, or the front end has died
//                                                   |                   |                   |
//                                                   +-------------------+-------------------+--> draining --> finished
//                                                                 no process is left               all output is written
#pragma once

#include "launch/control.h"
#include "launch/input.h"
#include "launch/job.h"
#include "launch/outcome.h"
#include "launch/output.h"
#include "launch/output_files.h"
#include "launch/steady.h"
#include "launch/table.h"
#include "launch/timers.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/signals.h"
#include "segment/segment.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace near::launch {

/// What the front end passes to the supervisor.
struct JobDescription {
  const Job& job;
  char** environment;
  int segment_descriptor;
  os::Pid front_end;       ///< the process that the user sees as mpiexec
  os::Pid front_end_group; ///< its process group
  bool terminal_input;     ///< standard input is the terminal of the session
  int pids_to;             ///< a pipe for the ranks' process ids, once all have started
};

class Supervisor {
public:
  explicit Supervisor(const JobDescription& description) : description_(description) {}
  /// Runs the job to its end; returns the status for the user.
  int run();

private:
  /// The states of the job. The picture above shows the transitions, which enter() makes.
  enum class State {
    running, ///< ranks run, and nothing has ended the job
    ending,  ///< all ranks have ended, or the end is decided; SIGTERM is planned if any process is left
    terminating, ///< SIGTERM, or the signal of a request to end, was sent: how a rank ends from now on no longer matters
    killing,  ///< SIGKILL is sent until no process is left
    draining, ///< no process is left; the rest of the output is written
  };

  struct Rank {
    /// The process whose end is the rank's end.
    enum class Awaits {
      started, ///< the process that was started; if the MPI process is another one, it is expected to end first
      left, ///< its program has ended well before MPI_Init while processes that it started live on: one of them may
            ///< be the MPI process (`mpiexec setsid program`)
      mpi_process, ///< the started process has ended well, the MPI process that it started lives on
    };
    os::Pid pid = 0;
    bool ended = false;
    Awaits awaits = Awaits::started;
    // From the rank table and the rank's region, which every rank can write: each value is copied once, and
    // trusted only if it can follow the previous one.
    segment::Phase phase = segment::Phase::launched;
    segment::Phase died_in = segment::Phase::launched; ///< once its phase is `dead`
    os::Pid number = 0;            ///< the MPI process's own process id as it sees it, once it has a region
    int status = 0;                ///< once ended: the status that a shell would show
    os::Pid mpi_process = 0;       ///< the MPI process, when a wrapper started it
    int mpi_process_watch = -1;    ///< its pidfd
    bool mpi_process_gone = false; ///< it ended without MPI_Finalize, or before it was found
    /// How the MPI process ended, if that could be seen before its parent was informed; otherwise pid 0.
    os::Ending mpi_process_ending;
    bool aborting = false; ///< its MPI_Abort was seen
  };

  // start.cpp
  base::Result prepare();
  base::Result start_ranks();
  void handle_pending_events();
  base::Result start_rank(unsigned rank);
  struct Piped {
    bool input = false, output = false, error = false;
  };
  base::Result connect(unsigned rank, os::Launch& launch, Piped& piped);
  void find_devices();
  void tell_front_end();

  // supervisor.cpp: events, and the state that they lead to
  void loop();
  void dispatch(std::uint64_t key);
  int wait_ms(std::uint64_t now_ns);
  void run_timers(std::uint64_t now_ns);
  void on_timer(Timers::Due due, std::uint64_t now_ns);
  void take_signals();
  void forward(int signal);
  void interrupt(int signal);
  void front_end_died();
  void abandon();
  void take_orders();
  void serve_rank(unsigned row);
  void time_out();
  /// Decides that the job ends: SIGTERM follows after `grace_ns`, and SIGKILL after that. A later outcome
  /// replaces an earlier one if it explains more, until SIGTERM has been sent.
  void decide(Outcome outcome, std::uint64_t grace_ns = 0);
  bool decided() const { return outcome_.reason != Reason::none; }
  /// Whether the outcome can no longer change.
  bool is_final() const { return state_ >= State::terminating; }
  void enter(State next);
  void kill_all(int signal);
  void ask_all(int signal);
  std::vector<os::Pid> living_pids() const;
  bool finished();
  void report_outcome();
  void report_exit_codes();
  void wait_for_left_processes();
  void check_output();

  // ranks.cpp: the state of the ranks
  void poll_ranks();
  void poll_rank(unsigned rank);
  void reap();
  void collect_endings();
  bool is_end_of(unsigned rank, os::Pid pid);
  void rank_ended(unsigned rank, os::Ending ending);
  void mark_dead(unsigned rank, int raw_status);
  segment::Phase phase_of(unsigned rank);
  bool has_region(unsigned rank);
  Outcome outcome_of(unsigned rank, const os::Ending& ending);
  void check_missing_init();
  void check_lost_ranks(std::uint64_t now_ns);
  void decide_on_lost_ranks();
  void decide_on_late_failure();

  // wrappers.cpp: MPI processes other than those that were started
  const os::Ending* known_ending_of_mpi_process(unsigned rank);
  void find_mpi_process(unsigned rank);
  bool watch_mpi_process(unsigned rank);
  void mpi_process_ended(unsigned rank);
  void mpi_process_is_gone(unsigned rank);
  void wrapper_out_of_time(unsigned rank);
  bool has_left_processes(unsigned rank) const;
  void check_left_processes();

  // notes.cpp
  void check_stall();
  void check_held_input();
  void say_who_lingers();
  void check_foreign_libraries(std::uint64_t now_ns);
  std::string stall_text(std::uint64_t& since);

  JobDescription description_;
  segment::Segment segment_;
  os::Poller poller_;
  os::SignalInbox inbox_;
  Output output_;
  OutputFiles files_;
  Input input_;
  Control control_;
  Table table_{control_};
  std::vector<Rank> ranks_;
  std::deque<os::Ending> endings_; ///< of children, still to be processed
  /// The endings of children that matched no rank when they were processed, the newest last; bounded. The MPI process
  /// of a forking wrapper may be among them: the end of the wrapper, which makes that ending count, may be seen later.
  std::deque<os::Ending> unmatched_children_;
  int null_input_ = -1;
  int front_end_watch_ = -1;
  os::MemoryKills kills_before_;

  State state_ = State::running;
  bool starting_ = true;        ///< not all ranks have been started
  std::vector<int> to_forward_; ///< signals for the ranks that arrived meanwhile
  Timers timers_;
  Outcome outcome_;
  /// The outcome of a rank that failed after MPI_Finalize: it becomes the job's once all ranks have ended.
  Outcome late_;
  unsigned living_ = 0;
  unsigned others_ = 0;   ///< ranks that were ended because of the outcome, except the one that caused it
  bool reported_ = false; ///< the outcome was printed
  bool codes_reported_ = false;
  bool failure_told_ = false;        ///< the agent knows that this part of the job ends
  bool any_ended_ = false;           ///< a rank has ended
  std::uint64_t interrupted_ns_ = 0; ///< when a user or a batch system asked the job to end; 0: not
  bool no_children_ = false;
  bool out_of_reach_ = false; ///< remaining processes cannot be found: see kill_all()
  bool drop_output_ = false;  ///< do not wait for a reader of the remaining output
  bool paused_ = false;       ///< SIGTSTP has stopped the ranks
  bool stall_said_ =
      false; ///< the note about ranks that wait for one that has called MPI_Finalize was printed
  Steady<std::uint64_t> stall_; ///< what identifies the wait
  bool hold_said_ = false;      ///< the note about a rank that does not read its standard input was printed
  Steady<Input::Hold> hold_;
  std::uint64_t started_ns_ = 0; ///< when the last rank was started
  std::vector<std::uint64_t> keys_;
};

} // namespace near::launch
