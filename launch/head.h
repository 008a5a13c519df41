// mpiexec for a job on several machines: starts an agent on each machine, distributes the ranks, keeps the table that all
// ranks share, and carries output, input, signals and the end of the job. See doc/launcher.md.
#pragma once

#include "launch/command.h"

#include <string>
#include <vector>

namespace near::launch {

/// Whether this machine has that name.
bool is_this_machine(const std::string& name);

/// Whether the command line, or the Slurm job, names a machine other than this one.
bool spans_machines(const Command& command);

/// Runs the job; `arguments` are the command line's. Returns the exit status of mpiexec.
int run_on_machines(const Command& command, const std::vector<std::string>& arguments);

} // namespace near::launch
