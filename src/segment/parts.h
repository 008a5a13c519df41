// The parts of a job on several machines. Its mpiexec publishes them for tools, in a sealed memory file among its descriptors; each part has
// a segment of its own, on its machine.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::segment {

using base::Result;

/// What runs on one of the machines.
struct JobPart {
  std::string machine;            ///< as the command line names it
  std::string space;              ///< in which numbers of processes are there: os::number_space()
  std::int32_t launcher = 0;      ///< a process there that has the part's segment open
  std::uint32_t ranks = 0;        ///< of the job, on that machine
  std::vector<std::string> reach; ///< the words that run `near` there; its arguments follow
  bool by_shell = false;          ///< they belong to the last word, which a shell there reads
};

/// Publishes them, as long as this process lives. `descriptor` is that of the file, which programs that it starts do not get.
Result publish_parts(const std::vector<JobPart>& parts, int& descriptor);
/// The parts of the job whose mpiexec is this process; empty if it is none, belongs to another user, or runs on one machine.
std::vector<JobPart> parts_of(std::int32_t launcher);

} // namespace near::segment
