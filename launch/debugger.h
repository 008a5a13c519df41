// How a debugger finds the ranks: the MPIR Process Acquisition Interface, version 1.
#pragma once

#include "launch/command.h"
#include "os/process.h"
#include "segment/segment.h"

#include <string>
#include <vector>

namespace near::launch {

/// Whether a debugger has announced, before the job began, that it will attach to the ranks.
bool is_debugged();

/// Where a debugger finds a rank.
struct Debugged {
  std::string machine, program;
  os::Pid pid = 0; ///< on that machine
};
/// The file of each program on the command line, or its name as written there if it is not found.
std::vector<std::string> program_files(const Command& command);
/// Fills the table in which a debugger finds the ranks, and stops for the debugger. Returns when the debugger lets this process
/// continue. Call it once.
void tell_debugger(std::vector<Debugged> ranks);

/// Makes ranks wait in MPI_Init for a debugger to attach, until let_go().
void hold(segment::Segment& segment);
void let_go(segment::Segment& segment);

} // namespace near::launch
