#include "launch/head.h"

#include "base/text.h"
#include "launch/job.h"
#include "launch/job_of_machines.h"
#include "launch/run.h"
#include "os/process.h"

#include <algorithm>
#include <cstdio>

namespace near::launch {

bool is_this_machine(const std::string& name) {
  const std::string own = os::machine_name();
  return name == "localhost" || name == "127.0.0.1" || name == "::1" || name == own ||
         name == own.substr(0, own.find('.'));
}

bool spans_machines(const Command& command) {
  auto is_elsewhere = [](const machines::Host& host) { return !is_this_machine(host.name); };
  auto any = [&](const std::vector<machines::Host>& hosts) {
    return std::any_of(hosts.begin(), hosts.end(), is_elsewhere);
  };
  return any(command.hosts) || std::any_of(command.applications.begin(), command.applications.end(),
                                           [&](const Application& each) { return any(each.hosts); });
}

int run_on_machines(const Command& command, const std::vector<std::string>& arguments) {
  if (!command.quiet)
    for (const auto& remark : command.remarks) std::fprintf(stderr, "mpiexec: warning: %s\n", remark.c_str());
  if (!report_pid(command).ok()) return complain(1);
  // Never destroyed: its threads may be waiting for a reader.
  JobOfMachines& job = *new JobOfMachines(command, arguments);
  if (!job.start().ok()) return complain(1);
  return job.run();
}

} // namespace near::launch
