// What mpiexec and an agent exchange about the job, and how an agent's child starts its part of it.
#include "base/knob.h"
#include "launch/agent.h"
#include "launch/job.h"
#include "launch/run.h"
#include "machines/frames.h"
#include "os/process.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace near::launch {
namespace {

using base::Result;

/// Takes over mpiexec's environment, except for the variables that belong to a machine.
void take_environment(const std::vector<std::string>& given) {
  std::vector<std::string> own;
  for (char** row = environ; *row != nullptr; ++row)
    if (const std::string text(*row); is_of_machine(text.substr(0, text.find('=')))) own.push_back(text);
  clearenv();
  own.insert(own.begin(), given.begin(), given.end());
  for (const std::string& row : own)
    if (const std::size_t equals = row.find('='); equals != std::string::npos && equals > 0)
      setenv(row.substr(0, equals).c_str(), row.c_str() + equals + 1, 1);
}

/// The command line again, reduced to the ranks of this machine.
Result read_command(const AgentJob& part, Command& command) {
  command.is_part = true;
  NEAR_TRY(parse_command(part.arguments, command));
  if (part.ranks_of_program.size() != command.applications.size())
    return base::fail(base::Code::invalid, "a file of programs is another one on this machine");
  for (std::size_t program = 0; program < command.applications.size(); ++program)
    command.applications[program].ranks = part.ranks_of_program[program];
  command.mapping.ranks = static_cast<unsigned>(part.ranks.size());
  command.ranks_are_default = false;
  command.remarks.clear(); // mpiexec has printed the remarks on the command line
  command.explain = part.explain;
  return {};
}

Result plan_part(const AgentJob& part, int control, Job& job) {
  std::error_code refused;
  std::filesystem::current_path(part.directory, refused);
  if (refused)
    return base::fail(base::Code::system, "cannot work in {} on this machine: {}; -wdir names another folder",
                      part.directory, refused.message());
  Command command;
  NEAR_TRY(read_command(part, command));
  NEAR_TRY(base::read_knobs(environ));
  NEAR_TRY(plan_job(std::move(command), environ, job));
  job.plan.ranks = part.ranks;
  job.part = {part.size, part.machine, part.machines, part.debugged, control};
  return {};
}

} // namespace

bool is_of_machine(std::string_view name) {
  constexpr std::array<std::string_view, 7> beginnings = {"SSH_", "XDG_",  "DBUS_",     "SLURM",
                                                          "PMI_", "PMIX_", "NEAR_BOOT_"};
  constexpr std::array<std::string_view, 6> names = {
      "HOSTNAME",        "HOST", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
      "ZE_AFFINITY_MASK"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view one) { return name.starts_with(one); }) ||
         std::find(names.begin(), names.end(), name) != names.end();
}

std::string AgentJob::body() const {
  return machines::BodyWriter()
      .texts(arguments)
      .texts(environment)
      .text(directory)
      .numbers(ranks)
      .numbers(ranks_of_program)
      .number(size)
      .number(machine)
      .number(machines)
      .number(lost_after)
      .number(explain)
      .number(has_input)
      .number(debugged)
      .body();
}

bool AgentJob::read(std::string_view body, AgentJob& job) {
  machines::BodyReader reader(body);
  AgentJob read;
  read.arguments = reader.texts();
  read.environment = reader.texts();
  read.directory = reader.text();
  read.ranks = reader.numbers();
  read.ranks_of_program = reader.numbers();
  read.size = static_cast<unsigned>(reader.number());
  read.machine = static_cast<unsigned>(reader.number());
  read.machines = static_cast<unsigned>(reader.number());
  read.lost_after = static_cast<unsigned>(reader.number());
  read.explain = reader.number() != 0;
  read.has_input = reader.number() != 0;
  read.debugged = reader.number() != 0;
  if (!reader.complete()) return false;
  job = std::move(read);
  return true;
}

std::string Hello::body() const {
  return machines::BodyWriter().number(protocol).text(version).text(name).number(slots).body();
}

bool Hello::read(std::string_view body, Hello& hello) {
  machines::BodyReader reader(body);
  Hello read;
  read.protocol = static_cast<unsigned>(reader.number());
  read.version = reader.text();
  read.name = reader.text();
  read.slots = static_cast<unsigned>(reader.number());
  if (!reader.ok()) return false;
  hello = std::move(read);
  return true;
}

int run_part(const AgentJob& part, int control) {
  take_environment(part.environment);
  Job job;
  const LeaseEnd lease;
  if (!plan_part(part, control, job).ok()) {
    base::set_failure_text(base::format("{}: {}", os::machine_name(), std::string(base::failure_text())));
    return complain(1);
  }
  return run_planned(job, environ);
}

} // namespace near::launch
