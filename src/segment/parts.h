// The parts of a job on several machines. The job's mpiexec publishes them for tools, in a sealed memory file among its
// descriptors. Each part has a segment of its own, on its machine.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::segment {

using base::Result;

/// The part of a job on one of the machines.
struct JobPart {
  std::string machine;            ///< as named on the command line
  std::string space;              ///< the namespace of process numbers there: os::number_space()
  std::int32_t launcher = 0;      ///< a process there that has opened the part's segment
  std::uint32_t ranks = 0;        ///< ranks of the job on that machine
  std::vector<std::string> reach; ///< the words that run `near` there; its arguments follow them
  bool by_shell = false;          ///< the arguments belong to the last word, which a shell there reads
};

/// Publishes the parts for as long as this process lives. `descriptor` is
/// that of the file; programs started by this process do not inherit it.
Result publish_parts(const std::vector<JobPart>& parts, int& descriptor);
/// The parts of the job whose mpiexec is this process; empty if the process
/// is not an mpiexec, belongs to another user, or runs a job on one machine.
std::vector<JobPart> parts_of(std::int32_t launcher);

} // namespace near::segment
