// A job that is ready to be started: who runs where with what.
#pragma once

#include "launch/command.h"
#include "planning/plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::launch {

struct Job {
  Command command;
  topo::Machine machine;
  topo::Slots slots;
  planning::Plan plan;
  std::vector<unsigned> application_of; ///< by rank
  bool foreign_told = false;            ///< that a program was linked with another MPI's library
};

/// Plans the job on this machine. Fails when the request cannot be met.
Result plan_job(Command command, char** environment, Job& job);

/// What --explain prints.
std::string explain(const Job& job, char** environment);

/// Prints what was asked for of the job before it starts: its map, the allocation, mpiexec's process number.
Result announce(const Job& job);

/// Starts the job, waits for its end, ends whatever is left of it. Returns the exit status of mpiexec.
int run_job(const Job& job, char** environment);

} // namespace near::launch
