// mpiexec: reads the command line, plans, starts (or explains) the job.
#include "base/knob.h"
#include "launch/agent.h"
#include "launch/head.h"
#include "launch/run.h"
#include "os/descriptor.h"

#include <cstdio>
#include <string_view>
#include <unistd.h>

namespace {

// The status that shells return for an invalid command line.
constexpr int usage_status = 2;

} // namespace

int main(int count, char** arguments) {
  using namespace near;
  os::fill_standard_descriptors();
  if (count == 2 && std::string_view(arguments[1]) == "--agent") return launch::run_agent();
  const std::vector<std::string> words(arguments + 1, arguments + count);
  launch::Command command;
  if (!launch::parse_command(words, command).ok()) return launch::complain(usage_status);
  if (command.help) {
    std::fputs(launch::help_text(command.help_about).c_str(), stdout);
    return 0;
  }
  if (command.version) {
    std::puts("mpiexec (NearMPI) " NEAR_VERSION);
    return 0;
  }
  for (const auto& application : command.applications)
    if (!launch::check_knobs(launch::environment_for(command, application, environ)).ok())
      return launch::complain(usage_status);

  if (!base::read_knobs(environ).ok()) return launch::complain(usage_status);
  if (launch::spans_machines(command)) return launch::run_on_machines(command, words);

  const launch::LeaseEnd lease;
  launch::Job job;
  if (!launch::plan_job(std::move(command), environ, job).ok()) return launch::complain(1);
  return launch::run_planned(job, environ);
}
