// How a debugger finds the ranks: the MPIR Process Acquisition Interface, version 1.
#pragma once

#include "launch/job.h"
#include "os/process.h"

#include <span>

namespace near::launch {

/// Whether a debugger has said, before the job began, that it will attach to the ranks.
bool is_debugged();

/// Fills the table in which a debugger finds the machine, program and process number of each rank, and stops for the
/// debugger. Returns when the debugger lets this process continue.
void tell_debugger(const Job& job, std::span<const os::Pid> pids);

} // namespace near::launch
