// Determines the MPI library with which a program was linked, according to its file, and the one that a
// process has loaded.
#pragma once

#include "launch/job.h"
#include "os/process.h"

#include <span>
#include <string>
#include <vector>

namespace near::launch {

/// The names of the shared libraries that an ELF file for this kind of machine
/// requires, in the order of the file. Empty for anything else: a script, or a
/// file that cannot be read, is truncated, or has inconsistent tables.
/// inconsistent tables.
std::vector<std::string> needed_libraries(const std::string& path);

/// The owner of a library according to its file name, such as "Open MPI"; "" if it is not another MPI's
/// library. `library` may be a path, of which only the last component counts.
std::string owner_of_library(const std::string& library);

/// Returns a sentence for each program of the job that was linked with another MPI library. Under NearMPI's
/// mpiexec each process of such a program would be a job of its own.
std::vector<std::string> foreign_programs(const Command& command);

/// Returns such a sentence about the first of these processes that has loaded another MPI library and was
/// not started by another launcher; "" if there is none.
std::string foreign_process(std::span<const os::Pid> processes);

} // namespace near::launch
