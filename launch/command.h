// The command line of mpiexec: what to start, where, and how to show it. MPI-5.0 section 11.5 ("mpiexec"),
// with the spellings that MPICH's and Open MPI's launchers share with it.
#pragma once

#include "base/result.h"
#include "topo/plan.h"

#include <string>
#include <utility>
#include <vector>

namespace near::launch {

using base::Result;

using Setting = std::pair<std::string, std::string>; ///< an environment variable and its value

/// One program of a `:` list.
struct Application {
  std::vector<std::string> arguments; ///< with the program first
  unsigned ranks = 0;                 ///< 0: not given
  std::string directory;              ///< empty: the launcher's
  std::vector<Setting> settings;
};

struct Command {
  std::vector<Application> applications;
  topo::Request placement;          ///< `ranks` is the sum
  std::vector<Setting> settings;    ///< for every application
  std::vector<std::string> only;    ///< with `inherit` false: names that are passed on all the same
  bool inherit = true;              ///< the launcher's own environment is passed on
  std::vector<std::string> remarks; ///< options that were accepted without a meaning here
  double timeout_s = 0;             ///< 0: none
  bool report_bindings = false;
  bool explain = false;
  bool explain_as_svg = false;
  std::string machine; ///< file of a recorded machine to plan for; empty: this one
  bool tag_output = false;
  bool merge_output = false; ///< standard error goes where standard output goes
  bool oversubscribe = false;
  bool never_oversubscribe = false;
  bool quiet = false;
  bool verbose = false;
  bool help = false;
  bool version = false;
};

/// Reads the arguments after the launcher's name. A failure's text names the argument and, for an unknown
/// option, the nearest one.
Result parse_command(const std::vector<std::string>& arguments, Command& command);

/// The variables of one rank's environment, without those of the start-up contract.
std::vector<std::string> environment_for(const Command& command, const Application& application,
                                         char** inherited);

/// Threads that each rank will start by its environment (OMP_NUM_THREADS, the first number; the most of all
/// programs); 0 where it says nothing.
unsigned expected_threads(const Command& command, char** inherited);

/// Adds OMP_PLACES, unless the environment says already where OpenMP's threads go.
void give_openmp_places(const std::string& places, std::vector<std::string>& environment);

/// Fails on a NEAR_ variable that is no knob, with the nearest name, and on a value that it may not have.
Result check_knobs(const std::vector<std::string>& environment);

/// The text of --help.
std::string help_text();

} // namespace near::launch
