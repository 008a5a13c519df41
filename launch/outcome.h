// Why a job ended, in words: which rank, how, in which MPI call, and the likely cause.
#pragma once

#include "os/limits.h"
#include "os/process.h"
#include "segment/activity.h"

#include <cstdint>
#include <string>

namespace near::launch {

enum class Reason {
  none,        ///< every rank ended successfully
  signalled,   ///< a rank was killed
  failed,      ///< a rank's exit status was not 0
  aborted,     ///< a rank called MPI_Abort, or had a fatal error
  unfinalized, ///< a rank exited with status 0 between MPI_Init and MPI_Finalize
  no_init,     ///< a rank exited with status 0 without MPI_Init while others wait in it
  vanished,    ///< the MPI process behind a wrapper ended, and its status is not known
  interrupted, ///< mpiexec itself received a signal to end
  timed_out,
  not_started, ///< a program could not be started
  unwritten,   ///< output of the ranks could not be written
  abandoned,   ///< mpiexec was killed: nobody waits for the job
  elsewhere,   ///< the job ends for a reason on another machine
};

/// What is known when the first rank fails.
struct Outcome {
  Reason reason = Reason::none;
  unsigned row = 0;    ///< the rank's position among those of this machine
  unsigned rank = 0;   ///< in MPI_COMM_WORLD
  std::string machine; ///< the rank's, if the job has several
  std::string program;
  os::Ending ending;
  int abort_code = 0;
  bool told = false;       ///< for `aborted`: a rank has already printed the reason
  int signal = 0;          ///< for `interrupted`
  bool was_in_mpi = false; ///< the rank had a region, so `activity` is known
  segment::Activity activity;
  os::MemoryKills kills; ///< since the job began
  /// For `failed`: the rank had called MPI_Finalize, so the others continue once they have called it.
  bool late = false;
  /// For `not_started`, `unwritten` and `timed_out`: the message; for `vanished`: what the wrapper did.
  std::string text;
  int status = 0; ///< what mpiexec exits with
};

/// How much an outcome explains. If several ranks failed at once, the outcome with the highest weight is
/// reported.
int weight(const Outcome& outcome);
/// Outcomes of at least this weight are about the job, not about one rank.
inline constexpr int weight_of_job = 6;

/// The report about the end of a job, or of its part on one machine.
struct OutcomeReport {
  int weight = 0;
  int status = 0;           ///< what mpiexec exits with
  bool told = false;        ///< the reason has been printed
  bool has_table = false;   ///< `sentence` ends with a table of what the ranks did
  bool of_machine = false;  ///< a machine was lost, which explains what happens to all others
  bool in_start = false;    ///< a program could not be started
  std::string sentence;     ///< the reason; "" if there is none
  unsigned others = 0;      ///< ranks that were ended as a consequence
  unsigned not_started = 0; ///< ranks that had not been started

  /// The report as the body of a frame (machines/frames.h).
  std::string body() const;
  static bool read(std::string_view body, OutcomeReport& report);
};

/// "the job was ended after 5 s (--timeout); what its ranks were doing"
std::string time_out_text(double seconds);

/// A report about the job as a whole.
OutcomeReport report_about_job(std::string sentence, int status);
/// A report about a machine of the job whose ranks are no longer watched, since one of mpiexec's processes there was killed.
OutcomeReport report_about_unwatched(int signal, unsigned ranks);
OutcomeReport report_of(const Outcome& outcome, unsigned others, unsigned not_started, std::uint64_t now_ns);
/// The message: one line unless it contains a table; "" if there is no reason, or if it has been printed.
std::string outcome_text(const OutcomeReport& report);

} // namespace near::launch
