// The machines of a job, as named by users and batch systems.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace near::machines {

using base::Result;

/// A machine on which ranks may run.
struct Host {
  std::string name;   ///< as written; passed to ssh
  unsigned slots = 0; ///< how many ranks it takes in its turn; 0: not given
  friend bool operator==(const Host&, const Host&) = default;
};

/// Reads "a:4,b" and adds these machines to `hosts`. A name that occurs several times has the sum of the slots; an
/// occurrence without a number counts as one. `option` names the source in messages.
Result parse_hosts(std::string_view text, const std::string& option, std::vector<Host>& hosts);
/// Reads a file with a machine on each line: "a", "a:4" (MPICH), "a slots=4" (Open MPI), and comments after '#'.
Result parse_host_file(std::string_view text, const std::string& file, std::vector<Host>& hosts);

/// Reads SLURM_JOB_NODELIST, such as "node[01-03,7],login", and SLURM_TASKS_PER_NODE, such as "4(x2),2", which may be empty.
/// Source: sbatch(1), "output environment variables".
Result parse_slurm_nodes(std::string_view nodes, std::string_view tasks, std::vector<Host>& hosts);

} // namespace near::machines
