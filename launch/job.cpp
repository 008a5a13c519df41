#include "launch/job.h"

#include "base/text.h"
#include "topo/drawing.h"

namespace near::launch {

Result plan_job(Command command, char** environment, Job& job) {
  Job made;
  made.command = std::move(command);
  auto& placement = made.command.placement;
  placement.expected_threads = expected_threads(made.command, environment);
  bool cards = made.command.explain || placement.order == topo::Order::by_card;
  if (made.command.machine.empty())
    NEAR_TRY(topo::read_machine(made.machine, cards));
  else
    NEAR_TRY(topo::machine_from_file(made.command.machine, made.machine));
  if (made.machine.recorded && !made.command.explain)
    return base::fail(base::Code::invalid,
                      "{} describes another machine than this one: only --explain can plan for it",
                      made.command.machine.empty() ? "a variable of hwloc's (HWLOC_XMLFILE, HWLOC_SYNTHETIC)"
                                                   : made.command.machine);
  if (made.machine.recorded) {
    made.slots = topo::slots_of_recorded(made.machine);
  } else {
    os::CpuSet affinity;
    NEAR_TRY(os::affinity_of(0, affinity));
    made.slots = topo::count_slots(affinity, os::read_limits());
  }
  NEAR_TRY(topo::make_plan(made.machine, made.slots, made.command.placement, made.plan));
  if (made.plan.oversubscribed && made.command.never_oversubscribe)
    return base::fail(base::Code::limit, "{} of {} on {} ({}), and --nooversubscribe forbids that",
                      base::counted(made.command.placement.ranks, "rank"),
                      base::counted(made.command.placement.threads, "thread"),
                      base::counted(made.slots.count, "slot"), made.slots.reason);
  const auto& applications = made.command.applications;
  for (unsigned index = 0; index < applications.size(); ++index)
    made.application_of.insert(made.application_of.end(), applications[index].ranks, index);
  job = std::move(made);
  return {};
}

std::string explain(const Job& job, char** environment) {
  if (job.command.explain_as_svg) return topo::draw_svg(job.machine, job.slots, job.plan);
  std::string text;
  unsigned first = 0;
  for (const auto& application : job.command.applications) {
    std::string line;
    for (const auto& argument : application.arguments) line += (line.empty() ? "" : " ") + argument;
    unsigned last = first + application.ranks - 1;
    text += base::format("program: {} ({} {})\n", line, first == last ? "rank" : "ranks",
                         first == last ? std::to_string(first) : base::format("{}-{}", first, last));
    if (!application.directory.empty()) text += base::format("  directory: {}\n", application.directory);
    for (const auto& [name, value] : job.command.settings) text += base::format("  {}={}\n", name, value);
    for (const auto& [name, value] : application.settings) text += base::format("  {}={}\n", name, value);
    if (!job.command.inherit)
      text += base::format("  environment: {} variables\n",
                           environment_for(job.command, application, environment).size());
    first = last + 1;
  }
  if (job.command.timeout_s > 0) text += base::format("timeout: {:.9g} s\n", job.command.timeout_s);
  text += "standard input: rank 0\n";
  return text + topo::head_text(job.machine, job.slots, job.plan) +
         topo::draw_text(job.machine, job.slots, job.plan) + topo::places_text(job.plan);
}

} // namespace near::launch
