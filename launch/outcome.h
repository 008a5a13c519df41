// Why a job ended, in words: which rank, how, in which MPI call, and the likely cause.
#pragma once

#include "os/limits.h"
#include "os/process.h"
#include "segment/activity.h"

#include <cstdint>
#include <string>

namespace near::launch {

enum class Reason {
  none,        ///< every rank ended well
  signalled,   ///< a rank was killed
  failed,      ///< a rank's exit status was not 0
  aborted,     ///< a rank called MPI_Abort, or an error of its was fatal
  unfinalized, ///< a rank exited with status 0 between MPI_Init and MPI_Finalize
  no_init,     ///< a rank exited with status 0 without MPI_Init while others wait in it
  vanished,    ///< the MPI process behind a wrapper ended, and whoever was told how says nothing
  interrupted, ///< mpiexec itself was asked to end
  timed_out,
  not_started, ///< a program could not be started
  unwritten,   ///< what the ranks print cannot be written
  abandoned,   ///< the user has killed mpiexec: nobody is left who could be told
};

/// What is known when the first rank fails.
struct Outcome {
  Reason reason = Reason::none;
  unsigned rank = 0;
  std::string program;
  os::Ending ending;
  int abort_code = 0;
  bool told = false;       ///< of `aborted`: a rank has written the reason already
  int signal = 0;          ///< of `interrupted`
  bool was_in_mpi = false; ///< it had a region, so `activity` is known
  segment::Activity activity;
  os::MemoryKills kills; ///< since the job began
  std::string text;      ///< of `not_started` and `unwritten`, a table to show, or what a wrapper did
  int status = 0;        ///< what mpiexec exits with
};

/// How much an outcome explains: of several ranks that failed at once, the highest is told.
int weight(const Outcome& outcome);
/// From here on an outcome speaks of the job, not of a rank.
inline constexpr int weight_of_job = 6;

/// The message, one line unless it carries a table; "" for Reason::none and when the reason is told. `others`
/// is the number of ranks that were ended because of it.
std::string outcome_text(const Outcome& outcome, unsigned others, std::uint64_t now_ns);

} // namespace near::launch
