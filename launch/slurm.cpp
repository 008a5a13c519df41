#include "launch/slurm.h"

#include "base/text.h"
#include "launch/head.h"
#include "os/process.h"

#include <charconv>
#include <string_view>

namespace near::launch {
namespace {

std::string_view value_of(char** environment, std::string_view name) {
  return base::find_variable(environment, name).value_or(std::string_view());
}

// The number at the beginning of the value: "4(x2),2" lists the tasks
// of each machine, beginning with this one's.
unsigned number_of(char** environment, std::string_view name) {
  constexpr unsigned most = 65536;
  unsigned number = 0;
  auto text = value_of(environment, name);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number <= most ? number : 0;
}

} // namespace

SlurmStep read_slurm_step(char** environment) {
  SlurmStep step;
  // Only processes that Slurm started on a machine know the name of that machine.
  if (value_of(environment, "SLURMD_NODENAME").empty()) return step;
  step.job = value_of(environment, "SLURM_JOB_ID");
  if (step.job.empty()) return step;
  step.cpus = number_of(environment, "SLURM_CPUS_ON_NODE");
  step.cpus_per_task = number_of(environment, "SLURM_CPUS_PER_TASK");
  step.machines = number_of(environment, "SLURM_JOB_NUM_NODES");
  // If a step has several tasks, each is an mpiexec that starts a job of its own.
  if (number_of(environment, "SLURM_STEP_NUM_TASKS") > 1) return step;
  step.tasks = number_of(environment, step.machines > 1 ? "SLURM_TASKS_PER_NODE" : "SLURM_NTASKS");
  return step;
}

Result read_slurm_machines(char** environment, std::vector<machines::Host>& hosts) {
  const auto nodes = value_of(environment, "SLURM_JOB_NODELIST");
  if (nodes.empty() || number_of(environment, "SLURM_STEP_NUM_TASKS") > 1) return {};
  if (os::program_file("srun", "").empty()) return {};
  std::vector<machines::Host> read;
  NEAR_TRY(machines::parse_slurm_nodes(nodes, value_of(environment, "SLURM_TASKS_PER_NODE"), read));
  if (read.size() > 1 || (read.size() == 1 && !is_this_machine(read[0].name))) hosts = std::move(read);
  return {};
}

} // namespace near::launch
