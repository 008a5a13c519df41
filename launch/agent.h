// The agent of a machine: `mpiexec --agent`, which mpiexec starts there by ssh or srun. It starts that machine's ranks as mpiexec
// does on one machine, and carries the communication between them and mpiexec over its standard streams (machines/frames.h).
//
//   mpiexec <--- ssh ---> agent <--- pipes, control socket ---> front end --- supervisor --- ranks
//
// If mpiexec orders it, the agent reaches further machines as mpiexec
// has reached this one, and relays messages to and from their agents.
//
// When the agent's connection ends, or mpiexec is silent for too long, the ranks on this machine and on the machines that it has
// reached are ended.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace near::launch {

/// What an agent is told about the job.
struct AgentJob {
  std::vector<std::string> arguments; ///< of mpiexec
  std::vector<std::string>
      environment; ///< NAME=value: mpiexec's environment, without variables that belong to its machine
  std::string directory;
  std::vector<unsigned> ranks;            ///< of this machine, in ascending order
  std::vector<unsigned> ranks_of_program; ///< how many of them run each program of the command line
  unsigned size = 0;                      ///< ranks of the job
  unsigned machine = 0, machines = 1;
  unsigned lost_after = 0; ///< seconds after which mpiexec is lost if it is silent; 0: never
  bool explain = false;    ///< print the plan instead
  bool has_input = false;  ///< some of the ranks read standard input
  bool debugged = false;   ///< ranks wait in MPI_Init for `go_on`

  std::string body() const;
  static bool read(std::string_view body, AgentJob& job);
};

/// An agent's first message.
struct Hello {
  unsigned protocol = 0;
  std::string version; ///< of NearMPI
  std::string name;    ///< of the machine
  unsigned slots = 1;

  std::string body() const;
  static bool read(std::string_view body, Hello& hello);
};

/// Whether the value of this variable belongs to a machine, so that it is not passed to others.
bool is_of_machine(std::string_view name);

/// Runs the agent; returns its exit status.
int run_agent();

/// Plans and starts this machine's part of the job, in the agent's child. Returns the exit status.
int run_part(const AgentJob& job, int control);

} // namespace near::launch
