// Recognises launchers of other MPI libraries by the environment variables that they set for each process.
#include "base/text.h"
#include "boot/boot.h"

#include <charconv>
#include <string_view>

namespace near::boot {
namespace {

std::string_view value_of(char** environment, std::string_view name) {
  return base::find_variable(environment, name).value_or(std::string_view());
}

// Returns -1 if the variable is absent or not a number.
long long number_of(char** environment, std::string_view name) {
  long long number = -1;
  auto text = value_of(environment, name);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : -1;
}

struct Launcher {
  const char* name;
  const char* rank; ///< variable that every process of a job has
  const char* size; ///< variable with the number of processes; nullptr: there is none
  /// A variable that is missing if the process was started by a process of the job, which keeps its rank to itself (forget_start).
  const char* beside = nullptr;
};

// More specific rows first: Open MPI's mpirun also sets PMIX_RANK, Slurm may set PMI_RANK.
constexpr Launcher launchers[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK"},
    {"MVAPICH's launcher", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"Cray PALS", "PALS_RANKID", nullptr},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"MPICH's or Intel MPI's Hydra", "PMI_RANK", "PMI_SIZE"},
    {"a PMI-1 launcher", "PMI_FD", nullptr},
    {"a PMIx launcher", "PMIX_RANK", nullptr},
};

// Steps of a Slurm job that were not started by srun: a batch script, an interactive shell, the external
// step.
constexpr long long first_special_slurm_step = 0xfffffff0;

std::string slurm(char** environment) {
  long long step = number_of(environment, "SLURM_STEP_ID");
  long long rank = number_of(environment, "SLURM_PROCID");
  long long tasks = number_of(environment, "SLURM_STEP_NUM_TASKS");
  if (tasks < 0) tasks = number_of(environment, "SLURM_NTASKS");
  if (step < 0 || step >= first_special_slurm_step || rank < 0 || tasks <= 1) return {};
  return base::format("Slurm's srun (SLURM_PROCID={}, {} tasks)", rank, tasks);
}

} // namespace

std::string foreign_launcher(char** environment) {
  // srun first, since it also sets the PMI variables of the plugin that it was told to use.
  if (std::string found = slurm(environment); !found.empty()) return found;
  for (const auto& launcher : launchers) {
    auto rank = value_of(environment, launcher.rank);
    if (rank.empty()) continue;
    if (launcher.beside != nullptr && value_of(environment, launcher.beside).empty()) continue;
    if (launcher.size == nullptr) return base::format("{} ({}={})", launcher.name, launcher.rank, rank);
    long long size = number_of(environment, launcher.size);
    if (size == 1) return {}; // one process is the same as a singleton
    if (size < 0) return base::format("{} ({}={})", launcher.name, launcher.rank, rank);
    return base::format("{} ({}={}, {}={})", launcher.name, launcher.rank, rank, launcher.size, size);
  }
  return {};
}

} // namespace near::boot
