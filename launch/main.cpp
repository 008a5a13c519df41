// mpiexec: reads the command line, plans, starts (or explains) the job.
#include "base/knob.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/job.h"
#include "launch/linkage.h"
#include "os/descriptor.h"
#include "os/lease.h"

#include <cstdio>
#include <unistd.h>

namespace {

// The status that shells return for an invalid command line.
constexpr int usage_status = 2;

int complain(int status) {
  std::fprintf(stderr, "mpiexec: %s\n", near::base::printable(near::base::failure_text(), true).c_str());
  return status;
}

std::string oversubscription(const near::launch::Job& job) {
  using near::base::counted;
  const auto& mapping = job.command.mapping;
  auto threads = mapping.threads == 1 ? "" : " of " + counted(mapping.threads, "thread");
  return near::base::format(
      "mpiexec: warning: {}{} share{} {} ({}); pass --oversubscribe if this is intended\n",
      counted(mapping.ranks, "rank"), threads, mapping.ranks == 1 ? "s" : "",
      counted(job.slots.count, "slot"), job.slots.reason);
}

/// Releases the processors that the job holds, however main() ends.
struct LeaseEnd {
  LeaseEnd() = default;
  LeaseEnd(const LeaseEnd&) = delete;
  LeaseEnd& operator=(const LeaseEnd&) = delete;
  ~LeaseEnd() { near::os::end_lease(); }
};

} // namespace

int main(int count, char** arguments) {
  using namespace near;
  os::fill_standard_descriptors();
  launch::Command command;
  if (!launch::parse_command({arguments + 1, arguments + count}, command).ok()) return complain(usage_status);
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
      return complain(usage_status);

  if (!base::read_knobs(environ).ok()) return complain(usage_status);

  const LeaseEnd lease;
  launch::Job job;
  if (!launch::plan_job(std::move(command), environ, job).ok()) return complain(1);
  if (!job.command.quiet)
    for (const auto& remark : job.command.remarks)
      std::fprintf(stderr, "mpiexec: warning: %s\n", remark.c_str());
  if (job.command.explain) {
    std::fputs(launch::explain(job, environ).c_str(), stdout);
    return 0;
  }
  if (!job.command.quiet) {
    if (job.plan.oversubscribed && !job.command.mapping.may_share)
      std::fputs(oversubscription(job).c_str(), stderr);
    for (const auto& sentence : launch::foreign_programs(job.command)) {
      std::fprintf(stderr, "mpiexec: warning: %s\n", sentence.c_str());
      job.foreign_told = true;
    }
  }
  if (!launch::announce(job).ok()) return complain(1);
  return launch::run_job(job, environ);
}
