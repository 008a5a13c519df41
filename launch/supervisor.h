// The working half of mpiexec: starts the ranks, carries their output, notices how each ends, and ends the
// job. It is the parent of every rank and the subreaper of all that they start. doc/launcher.md has the whole
// argument of who ends whom.
#pragma once

#include "launch/input.h"
#include "launch/job.h"
#include "launch/output.h"
#include "launch/output_files.h"
#include "launch/verdict.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/signals.h"
#include "segment/segment.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace near::launch {

/// What the front process hands over.
struct Mission {
  const Job& job;
  char** environment;
  int segment_descriptor;
  os::Pid front;       ///< the process that the user sees as mpiexec
  os::Pid front_group; ///< its process group
  bool terminal_input; ///< standard input is the terminal, and this job is in its foreground
  int pids_to;         ///< a pipe: the ranks' process numbers go there once all have started
};

class Supervisor {
public:
  explicit Supervisor(const Mission& mission) : mission_(mission) {}
  /// Runs the job to its end; returns the status for the user.
  int run();

private:
  struct Rank {
    os::Pid pid = 0;
    bool ended = false;
    // From the rank table and the rank's region, which every rank can write: taken once, and believed only
    // where it can follow what was there before.
    segment::Phase phase = segment::Phase::launched;
    segment::Phase died_in = segment::Phase::launched; ///< once its phase is `dead`
    os::Pid number = 0;   ///< what the MPI process knows itself by, once it has a region
    int status = 0;       ///< when ended: what a shell shows
    os::Pid inner = 0;    ///< the MPI process, when a wrapper started it
    int inner_watch = -1; ///< its pidfd
    std::uint64_t inner_gone_ns = 0;
    os::Ending inner_ending; ///< how it ended, if that could be seen before its parent was told; else pid 0
    bool wrapper_ended = false; ///< the started process ended well, the MPI process lives on
    bool aborting = false;      ///< its MPI_Abort was seen
    /// Since when its program has ended well before MPI_Init while processes that it started live on: one of
    /// them may be the MPI process (`mpiexec setsid program`). 0: not so.
    std::uint64_t left_ns = 0;
  };
  enum class Stage { running, ending, draining };

  base::Result prepare();
  base::Result start_ranks();
  base::Result start_rank(unsigned rank);
  struct Piped {
    bool input = false, output = false, error = false;
  };
  base::Result connect(unsigned rank, os::Launch& launch, Piped& piped);
  void tell_cards();
  void tell_front();
  void loop();
  void dispatch(std::uint64_t key);
  int next_timeout(std::uint64_t now_ns);
  void on_time(std::uint64_t now_ns);

  void take_signals();
  void reap();
  void collect_endings();
  void rank_ended(unsigned rank, os::Ending ending);
  segment::Phase phase_of(unsigned rank);
  bool has_region(unsigned rank);
  const os::Ending* seen_ending_of_inner(unsigned rank);
  void look();
  void look_at(unsigned rank);
  void look_for_inner(unsigned rank);
  bool watch_inner(unsigned rank);
  void look_for_missing_init();
  bool has_left_processes(unsigned rank) const;
  void look_for_left_processes();
  void look_for_stall();
  void look_for_held_input();
  void look_for_foreign_libraries(std::uint64_t now_ns);
  std::string stall_text(std::uint64_t& since);
  bool is_end_of(unsigned rank, os::Pid pid);
  void look_for_lost_ranks(std::uint64_t now_ns);
  void inner_ended(unsigned rank);
  void mark_dead(unsigned rank, int raw_status);

  Verdict verdict_on(unsigned rank, const os::Ending& ending);
  /// The job is to end: SIGTERM after `grace_ns`, SIGKILL after that.
  void decide(Verdict verdict, std::uint64_t grace_ns = 0);
  void interrupt(int signal);
  void front_ended();
  void forward(int signal);
  bool finished();
  void say_verdict();
  void say_exit_codes();
  void look_at_output();
  void kill_all(int signal);
  void time_out();

  Mission mission_;
  segment::Segment segment_;
  os::Poller poller_;
  os::SignalInbox inbox_;
  Output output_;
  OutputFiles files_;
  Input input_;
  std::vector<Rank> ranks_;
  std::deque<os::Ending> endings_; ///< of children, to be judged
  /// Of children whose end was no rank's when it was judged, the newest last; bounded. The MPI process of a
  /// forking wrapper may be among them: the wrapper's end, which makes it count, may be seen later.
  std::deque<os::Ending> strangers_;
  int null_input_ = -1;
  int front_watch_ = -1;
  os::MemoryKills kills_before_;

  Stage stage_ = Stage::running;
  Verdict verdict_;
  bool decided_ = false;
  bool asked_ = false; ///< SIGTERM has gone out: how a rank ends from now on says nothing
  bool said_ = false;
  bool codes_said_ = false;
  bool no_children_ = false;
  bool out_of_reach_ = false; ///< whoever is left cannot be found: see kill_all
  unsigned living_ = 0;
  unsigned others_ = 0;          ///< ranks that the verdict ended beside the one that it speaks of
  std::uint64_t lost_ns_ = 0;    ///< since when no process is left though ranks have not ended; 0: not so
  bool paused_ = false;          ///< SIGTSTP has stopped the ranks
  bool stall_said_ = false;      ///< that ranks wait for one that has called MPI_Finalize
  std::uint64_t stall_ = 0;      ///< what identifies the wait that was seen last
  std::uint64_t stall_ns_ = 0;   ///< when it was seen first
  bool hold_said_ = false;       ///< that one rank's standard input holds up that of the others
  Input::Hold hold_;             ///< of standard input, as it was seen last
  std::uint64_t hold_ns_ = 0;    ///< when it was seen first
  std::uint64_t looked_ns_ = 0;  ///< when the rank table was looked at last
  std::uint64_t timeout_ns_ = 0; ///< when --timeout ends the job; 0: never
  std::uint64_t ask_ns_ = 0;     ///< when SIGTERM goes out; 0: not planned
  std::uint64_t kill_ns_ = 0;    ///< when SIGKILL goes out (again); 0: not planned
  std::uint64_t cards_ns_ = 0;   ///< when the machine's cards are looked for; 0: they have been
  std::uint64_t started_ns_ = 0; ///< when all ranks had been started
  std::uint64_t foreign_ns_ = 0; ///< when to look for another MPI's library in the ranks; 0: not any more
  std::uint64_t give_up_ns_ = 0; ///< when output that nobody reads is dropped; 0: never
  std::vector<std::uint64_t> keys_;
};

} // namespace near::launch
