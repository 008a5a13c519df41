// The command line of mpiexec: what to start, where, and how to show it. MPI-5.0 section 11.5 ("mpiexec"),
// with the spellings that the launchers of MPICH and Open MPI have in common with it.
#pragma once

#include "base/result.h"
#include "launch/ranks_named.h"
#include "machines/hosts.h"
#include "planning/plan.h"

#include <string>
#include <utility>
#include <vector>

namespace near::launch {

using base::Result;

using Setting = std::pair<std::string, std::string>; ///< an environment variable and its value

/// Which of the launcher's environment variables a process inherits.
struct Inheritance {
  bool chosen = false;             ///< the user chose
  bool all = true;                 ///< everything except `except`; otherwise only `only`
  std::vector<std::string> only;   ///< names; a final '*' matches any ending
  std::vector<std::string> except; ///< names
  bool passes_on(const std::string& name) const;
};

/// One program of a command line with several programs, separated by `:`.
struct Application {
  std::vector<std::string> arguments; ///< the first is the program
  unsigned ranks = 0;                 ///< 0: not given
  std::string ranks_by;               ///< the option that gave them: "-n 2"
  unsigned per_machine = 0;           ///< ranks on each machine; 0: not given
  std::string per_machine_by;         ///< the option that gave them: "-ppn 2"
  bool per_machine_limits = false;    ///< `per_machine` is a limit
  std::vector<machines::Host> hosts;  ///< machines of its own (-host); empty: Command::hosts
  std::string directory;              ///< working directory; empty: that of the launcher
  std::string path;                   ///< folders to search for the program first, separated by ':'
  Inheritance inherited;              ///< unless chosen, Command::inherited applies
  std::vector<Setting> settings;
};

/// A program that wraps the program of some ranks: `-gtool "strace -c:0"`.
struct Tool {
  std::vector<std::string> words;
  NamedRanks ranks;
};

struct Command {
  std::vector<Application> applications;
  planning::Request mapping;     ///< `ranks` is the sum over all applications
  std::vector<Setting> settings; ///< for every application
  Inheritance inherited;
  std::vector<Tool> tools;
  std::vector<machines::Host>
      hosts;                ///< machines that the command line names; empty: this one, or those of Slurm
  bool by_slurm = false;    ///< `hosts` are the Slurm job's; srun reaches them
  std::string remote_shell; ///< what reaches other machines otherwise: a program and its options; empty: ssh
  bool is_part = false;     ///< parsed again by the agent of a machine, for the ranks that it starts
  std::vector<std::string> remarks;       ///< warnings about the command line
  bool ranks_are_default = false;         ///< the number of ranks was not given, and there is one program
  double timeout_s = 0;                   ///< 0: none
  NamedRanks input = NamedRanks::only(0); ///< the ranks that read standard input
  std::string prefix;                     ///< pattern for the prefix of each line of output; "": none
  bool timestamps = false;                ///< each line begins with the time
  std::string output_file;                ///< pattern for the name; "": the standard output of mpiexec
  std::string error_file;
  std::string output_file_by; ///< the option that named them: "--output-filename out"
  std::string error_file_by;
  bool copy_output = false;  ///< output that goes to files also goes to the streams of mpiexec
  bool merge_output = false; ///< standard error goes where standard output goes
  std::string report_pid;    ///< where to write mpiexec's process id: "-", "+" or a file; "": nowhere
  bool print_rank_map = false;
  bool print_exit_codes = false;
  bool display_allocation = false;
  bool display_machine = false;
  bool report_bindings = false;
  bool explain = false;
  bool explain_as_svg = false;
  std::string machine; ///< file with a recorded machine to plan for; empty: plan for this machine
  bool quiet = false;
  bool verbose = false;
  bool help = false;
  std::string help_about; ///< a group of options, an option, or "all"; "": the common options
  bool version = false;
  bool reading_file = false; ///< true while the lines of -configfile are read
};

/// Reads the arguments that follow the launcher's name. Command::is_part keeps its value. The message of a failure names the
/// argument and, for an unknown option, the most similar one.
Result parse_command(const std::vector<std::string>& arguments, Command& command);

/// The library folder of this mpiexec's installation: lib beside bin; "" if there is none.
std::string own_library_folder();

/// The environment of one rank, without the variables of the start-up contract.
std::vector<std::string> environment_for(const Command& command, const Application& application,
                                         char** inherited);

/// The number of threads that each rank will start according to its environment (the first number in
/// OMP_NUM_THREADS; the maximum over all programs); 0 if the environment does not say.
unsigned expected_threads(const Command& command, char** inherited);

/// Adds OMP_PLACES unless the environment already says where OpenMP threads run.
void give_openmp_places(const std::string& places, std::vector<std::string>& environment);

/// Fails on a NEAR_ variable that is not a knob, naming the most similar one, and on a value that is out of
/// range.
Result check_knobs(const std::vector<std::string>& environment);

/// The arguments of one rank's process: those of its program, after the tools that wrap it.
std::vector<std::string> arguments_for(const Command& command, const Application& application, unsigned rank);

/// The text of --help; `about` is as in Command::help_about.
std::string help_text(const std::string& about);

} // namespace near::launch
