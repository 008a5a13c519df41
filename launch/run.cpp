#include "launch/run.h"

#include "base/text.h"
#include "launch/linkage.h"

#include <cstdio>

namespace near::launch {
namespace {

std::string oversubscription(const Job& job) {
  using base::counted;
  const auto& mapping = job.command.mapping;
  auto threads = mapping.threads == 1 ? "" : " of " + counted(mapping.threads, "thread");
  return base::format("mpiexec: warning: {}{} share{} {} ({}); pass --oversubscribe if this is intended\n",
                      counted(mapping.ranks, "rank"), threads, mapping.ranks == 1 ? "s" : "",
                      counted(job.slots.count, "slot"), job.slots.reason);
}

} // namespace

int complain(int status) {
  std::fprintf(stderr, "mpiexec: %s\n", base::printable(base::failure_text(), true).c_str());
  return status;
}

int run_planned(Job& job, char** environment) {
  if (!job.command.quiet)
    for (const auto& remark : job.command.remarks)
      std::fprintf(stderr, "mpiexec: warning: %s\n", remark.c_str());
  if (job.command.explain) {
    std::fputs(explain(job, environment).c_str(), stdout);
    return 0;
  }
  if (!job.command.quiet) {
    if (job.plan.oversubscribed && !job.command.mapping.may_share)
      std::fputs(oversubscription(job).c_str(), stderr);
    for (const auto& sentence : foreign_programs(job.command)) {
      std::fprintf(stderr, "mpiexec: warning: %s\n", sentence.c_str());
      job.foreign_told = true;
    }
  }
  if (!announce(job).ok()) return complain(1);
  return run_job(job, environment);
}

} // namespace near::launch
