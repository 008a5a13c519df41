// The command line of mpiexec: what to start, where, and how to show it. MPI-5.0 section 11.5 ("mpiexec"),
// with the spellings that MPICH's and Open MPI's launchers share with it.
#pragma once

#include "base/result.h"
#include "launch/ranks_named.h"
#include "planning/plan.h"

#include <string>
#include <utility>
#include <vector>

namespace near::launch {

using base::Result;

using Setting = std::pair<std::string, std::string>; ///< an environment variable and its value

/// What a process gets of the launcher's own environment.
struct Inheritance {
  bool chosen = false;             ///< somebody said so
  bool all = true;                 ///< everything, but for `except`; else nothing, but for `only`
  std::vector<std::string> only;   ///< names; one that ends with '*' means all that begin so
  std::vector<std::string> except; ///< names
  bool passes_on(const std::string& name) const;
};

/// One program of a `:` list.
struct Application {
  std::vector<std::string> arguments; ///< with the program first
  unsigned ranks = 0;                 ///< 0: not given
  std::string ranks_by;               ///< the option that gave them: "-n 2"
  unsigned per_machine = 0;           ///< ranks to each machine, of which there is one; 0: not given
  std::string per_machine_by;         ///< the option that gave them: "-ppn 2"
  bool per_machine_limits = false;    ///< more ranks than these need further machines
  std::string directory;              ///< empty: the launcher's
  std::string path;                   ///< folders to look for the program in first, with ':' between them
  Inheritance inherited;              ///< where not chosen, the command's counts
  std::vector<Setting> settings;
};

/// A program that some ranks are started under: `-gtool "strace -c:0"`.
struct Tool {
  std::vector<std::string> words;
  NamedRanks ranks;
};

struct Command {
  std::vector<Application> applications;
  planning::Request mapping;     ///< `ranks` is the sum
  std::vector<Setting> settings; ///< for every application
  Inheritance inherited;
  std::vector<Tool> tools;
  std::vector<std::string> remarks;       ///< what the user should know of the command line
  bool ranks_are_default = false;         ///< nobody said how many; there is one program
  double timeout_s = 0;                   ///< 0: none
  NamedRanks input = NamedRanks::only(0); ///< who reads standard input
  std::string prefix;                     ///< what each line of output begins with, a pattern; "": nothing
  bool timestamps = false;                ///< each line begins with the time
  std::string output_file;                ///< a pattern of the name; "": mpiexec's own standard output
  std::string error_file;
  std::string output_file_by; ///< the option that named them: "--output-filename out"
  std::string error_file_by;
  bool copy_output = false;  ///< what goes to those files goes to mpiexec's own streams as well
  bool merge_output = false; ///< standard error goes where standard output goes
  std::string report_pid;    ///< where mpiexec's process number goes: "-", "+" or a file; "": nowhere
  bool print_rank_map = false;
  bool print_exit_codes = false;
  bool display_allocation = false;
  bool display_machine = false;
  bool report_bindings = false;
  bool explain = false;
  bool explain_as_svg = false;
  std::string machine; ///< file of a recorded machine to plan for; empty: this one
  bool quiet = false;
  bool verbose = false;
  bool help = false;
  std::string help_about; ///< a group of options, an option, or "all"; "": what most users need
  bool version = false;
  bool reading_file = false; ///< while the lines of -configfile are read
};

/// Reads the arguments after the launcher's name. A failure's text names the argument and, for an unknown
/// option, the nearest one.
Result parse_command(const std::vector<std::string>& arguments, Command& command);

/// The folder of the library that belongs to this mpiexec: lib beside bin; "" when it is not there.
std::string own_library_folder();

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

/// The arguments of one rank's process: its program's, behind the tools that it is started under.
std::vector<std::string> arguments_for(const Command& command, const Application& application, unsigned rank);

/// The text of --help; `about` is as in Command::help_about.
std::string help_text(const std::string& about);

} // namespace near::launch
