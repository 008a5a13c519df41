// What Slurm has granted on this machine, according to its environment variables. Source: sbatch(1) and
// srun(1), "output environment variables". Its control group and affinity mask are read like any others
// (os/limits.h).
#pragma once

#include "machines/hosts.h"

#include <string>
#include <vector>

namespace near::launch {

using base::Result;

/// The batch script, shell or step in which mpiexec was started. 0: unknown.
struct SlurmStep {
  std::string job;            ///< "" outside of Slurm jobs, and on a machine that does not belong to the job
  unsigned cpus = 0;          ///< processors of this machine
  unsigned tasks = 0;         ///< requested on this machine
  unsigned cpus_per_task = 0; ///< requested
  unsigned machines = 0;
};

SlurmStep read_slurm_step(char** environment);

/// The machines of a Slurm job that has several, or one other than this machine, if srun is available to reach them. Empty in a
/// step with several tasks: each of these is an mpiexec that starts a job of its own.
Result read_slurm_machines(char** environment, std::vector<machines::Host>& hosts);

} // namespace near::launch
