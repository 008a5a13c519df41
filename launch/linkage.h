// Which MPI library a program was linked with, as its file says, and which one a process has loaded.
#pragma once

#include "launch/job.h"
#include "os/process.h"

#include <span>
#include <string>
#include <vector>

namespace near::launch {

/// The names of the shared libraries that an ELF file of this machine's kind asks for, in its order. Empty
/// for everything else: a script, a file that cannot be read, one that is cut off or whose tables lead
/// astray.
std::vector<std::string> needed_libraries(const std::string& path);

/// Whose library this is by its file's name, such as "Open MPI"; "" where that is no other MPI's. `library`
/// may be a path, of which the last component counts.
std::string owner_of_library(const std::string& library);

/// A sentence for each program of the job that was linked with another MPI library: under NearMPI's mpiexec
/// each of its processes would be alone.
std::vector<std::string> foreign_programs(const Command& command);

/// Such a sentence about the first of these processes that has loaded another MPI's library and that no
/// other launcher has started; "" when there is none.
std::string foreign_process(std::span<const os::Pid> processes);

} // namespace near::launch
