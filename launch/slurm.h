// What Slurm has granted on this machine, in its own words. Source: sbatch(1) and srun(1), "output
// environment variables". Its control group and affinity mask are read as anybody's (os/limits.h).
#pragma once

#include <string>

namespace near::launch {

/// Of the batch script, shell or step that mpiexec was started in. 0: not told.
struct SlurmStep {
  std::string job;            ///< "" outside of Slurm's jobs, and on a machine that is none of the job's
  unsigned cpus = 0;          ///< processors of this machine
  unsigned tasks = 0;         ///< that were asked for, on this machine
  unsigned cpus_per_task = 0; ///< that were asked for
  unsigned machines = 0;
};

SlurmStep read_slurm_step(char** environment);

} // namespace near::launch
