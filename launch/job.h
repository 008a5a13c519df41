// A job that is ready to start: the programs, and where their ranks run.
#pragma once

#include "launch/command.h"
#include "planning/plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::launch {

/// The part of a job that runs on this machine.
struct Part {
  unsigned size = 0;    ///< ranks of the whole job; 0: all of them are on this machine
  unsigned machine = 0; ///< number of this machine
  unsigned machines = 1;
  bool debugged = false; ///< its ranks wait until mpiexec reports that a debugger has attached to them
  int control = -1;      ///< a socket to this machine's agent; -1: this mpiexec works alone
};

struct Job {
  Command command;
  topo::Machine machine;
  topo::Slots slots;
  planning::Plan plan;
  Part part;
  std::vector<unsigned> application_of; ///< by row: the position of a rank among those on this machine
  /// The rank in MPI_COMM_WORLD of a row.
  unsigned rank_of(unsigned row) const { return plan.rank_of(row); }
  bool foreign_told = false; ///< the warning about a program linked with another MPI library was printed
};

/// Plans the job on this machine. Fails if the request cannot be met.
Result plan_job(Command command, char** environment, Job& job);

/// What --explain prints.
std::string explain(const Job& job, char** environment);

/// Writes mpiexec's process id to the destination of --report-pid.
Result report_pid(const Command& command);

/// Prints the information that was requested before the job starts: its map, the allocation, the process id
/// of mpiexec.
Result announce(const Job& job);

/// Starts the job, waits until it ends, and ends any process that is left. Returns the exit status of
/// mpiexec.
int run_job(const Job& job, char** environment);

} // namespace near::launch
