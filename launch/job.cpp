#include "launch/job.h"

#include "base/knob.h"
#include "base/text.h"
#include "launch/slurm.h"
#include "os/descriptor.h"
#include "os/lease.h"
#include "os/memory.h"
#include "os/process.h"
#include "planning/drawing.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace near::launch {
namespace {

/// Whether to avoid the processors of other jobs: not if sharing is intended, or if no rank is bound.
bool keeps_off(const Job& job) {
  const auto& command = job.command;
  bool bound = command.mapping.bind || !command.mapping.bind_chosen;
  return base::knobs().leases.number != 0 && !job.machine.recorded && !command.mapping.may_share && bound;
}

/// "job 12 of yours", "jobs 12 and 13 of yours", "job 12 of yours and 1 in other containers".
std::string owners_text(const std::vector<os::Lease>& leases) {
  constexpr std::size_t shown = 4;
  std::vector<os::Pid> numbers;
  for (const auto& lease : leases)
    if (lease.owner != 0) numbers.push_back(lease.owner);
  std::size_t elsewhere = leases.size() - numbers.size();
  if (numbers.empty()) return base::counted(elsewhere, "job") + " of yours in other containers";
  std::string text = numbers.size() == 1 ? "job" : "jobs";
  for (std::size_t i = 0; i < numbers.size() && i < shown; ++i)
    text += base::format("{} {}", i == 0 ? "" : i + 1 == numbers.size() ? " and" : ",", numbers[i]);
  if (numbers.size() > shown) text += base::format(" and {} more", numbers.size() - shown);
  text += " of yours";
  return elsewhere == 0 ? text : text + base::format(" and {} in other containers", elsewhere);
}

/// The slots that remain without the cores that contain a processor held by another job.
topo::Slots slots_beside(const Job& job, const os::CpuSet& held) {
  topo::Slots free = job.slots;
  for (const auto& core : job.machine.cores)
    if (!(core.cpus & held).empty())
      for (unsigned cpu : core.cpus.members()) free.allowed.remove(cpu);
  free.count = std::min(free.count, free.allowed.count());
  free.reason += base::format(", {} held by other jobs", job.slots.allowed.count() - free.allowed.count());
  return free;
}

/// Plans on the processors that no other job of this user holds. Returns false if there are too few.
bool plan_on_free_ones(Job& job, const os::CpuSet& held, const std::string& owners) {
  topo::Slots free = slots_beside(job, held);
  planning::Plan plan;
  if (free.allowed.empty() || !planning::make_plan(job.machine, free, job.command.mapping, plan).ok() ||
      plan.oversubscribed)
    return false;
  plan.notes.push_back(base::format("processors {} are left to {}", held.text(), owners));
  job.plan = std::move(plan);
  job.slots = std::move(free);
  return true;
}

/// Plans around this user's other jobs, or with a remark on the same processors, and takes a lease on the
/// processors chosen.
Result plan_beside_others(Job& job) {
  os::LeasePlanning planning;
  std::vector<os::Lease> others = planning.others();
  std::erase_if(others, [&](const os::Lease& lease) { return (lease.cpus & job.slots.allowed).empty(); });
  os::CpuSet held;
  for (const auto& lease : others) held = held | (lease.cpus & job.slots.allowed);
  if (others.empty() || !plan_on_free_ones(job, held, owners_text(others))) {
    NEAR_TRY(planning::make_plan(job.machine, job.slots, job.command.mapping, job.plan));
    if (!others.empty() && !job.plan.oversubscribed)
      job.command.remarks.push_back(base::format(
          "the ranks share processors {} with {}, since too few others are free; pass --oversubscribe "
          "if this is intended",
          held.text(), owners_text(others)));
  }
  if (!planning.problem().empty())
    job.plan.notes.push_back("which processors your other jobs hold is not known: " + planning.problem());
  if (!planning.intrusion().empty())
    job.command.remarks.push_back("two jobs may get the same processors: " + planning.intrusion());
  os::CpuSet own;
  for (const auto& binding : job.plan.bindings) own = own | binding.home;
  if (!job.command.explain && !own.empty()) planning.take(own);
  return {};
}

/// If Slurm's control groups and affinity masks are switched off, only its variables tell what it has
/// granted.
void obey(const SlurmStep& slurm, topo::Slots& slots) {
  if (slurm.cpus == 0) return;
  slots.reason += base::format(", Slurm {}", slurm.cpus);
  slots.count = std::min(slots.count, slurm.cpus);
}

/// Determines how many threads each rank will start if --threads is not given: from OMP_NUM_THREADS or,
/// otherwise, from the request to Slurm, provided that the ranks are the tasks requested there and there are
/// enough cores.
void expect_threads(const SlurmStep& slurm, char** environment, Job& job) {
  auto& mapping = job.command.mapping;
  mapping.expected_threads = expected_threads(job.command, environment);
  if (mapping.expected_threads != 0) {
    mapping.expected_by = base::format("OMP_NUM_THREADS={}", mapping.expected_threads);
    return;
  }
  mapping.expected_threads = 1;
  if (slurm.cpus_per_task == 0 || mapping.ranks != std::max(slurm.tasks, 1u)) return;
  std::uint64_t cores = 0, processors = 0;
  for (const auto& core : job.machine.cores) {
    unsigned allowed = (core.cpus & job.slots.allowed).count();
    processors += allowed;
    cores += allowed != 0;
  }
  if (cores == 0 || processors < std::uint64_t{mapping.ranks} * slurm.cpus_per_task) return;
  // Slurm counts processors; a core may have several.
  auto of_core = mapping.by_hwthread ? 1 : static_cast<unsigned>(processors / cores);
  mapping.expected_threads = (slurm.cpus_per_task + of_core - 1) / of_core;
  mapping.expected_by = base::format("SLURM_CPUS_PER_TASK={}", slurm.cpus_per_task);
}

/// Sets the number of ranks if it is not given: as many as --map-by ppr implies, otherwise one.
void count_ranks(Job& job) {
  auto& command = job.command;
  if (!command.ranks_are_default) return;
  auto& ranks = command.applications[0].ranks;
  if (command.mapping.order == planning::Order::ppr)
    ranks = planning::ranks_of_ppr(job.machine, job.slots, command.mapping);
  else if (job.slots.count > 1)
    command.remarks.push_back(base::format(
        "one process is started, since no -n says how many; there are {} slots", job.slots.count));
  command.mapping.ranks = ranks;
}

} // namespace

Result plan_job(Command command, char** environment, Job& job) {
  Job made;
  made.command = std::move(command);
  const SlurmStep slurm = read_slurm_step(environment);
  const auto& mapping = made.command.mapping;
  bool devices = made.command.explain || mapping.order == planning::Order::by_nic;
  if (made.command.machine.empty())
    NEAR_TRY(topo::read_machine(made.machine, devices));
  else
    NEAR_TRY(topo::machine_from_file(made.command.machine, made.machine));
  if (made.machine.recorded && !made.command.explain)
    return base::fail(base::Code::invalid,
                      "{} describes another machine than this one: only --explain can plan for it",
                      made.command.machine.empty() ? topo::machine_variables() : made.command.machine);
  if (made.machine.recorded) {
    made.slots = topo::slots_of_recorded(made.machine);
  } else {
    os::CpuSet affinity;
    NEAR_TRY(os::affinity_of(0, affinity));
    made.slots = topo::count_slots(affinity, os::read_limits());
    obey(slurm, made.slots);
  }
  count_ranks(made);
  made.command.mapping.only_rank = made.command.mapping.ranks == 1 && !made.command.is_part;
  expect_threads(slurm, environment, made);
  if (keeps_off(made))
    NEAR_TRY(plan_beside_others(made));
  else
    NEAR_TRY(planning::make_plan(made.machine, made.slots, made.command.mapping, made.plan));
  if (made.plan.oversubscribed && made.command.mapping.must_not_share)
    return base::fail(base::Code::limit, "{} of {} on {} ({}), and --nooversubscribe forbids that",
                      base::counted(made.command.mapping.ranks, "rank"),
                      base::counted(made.command.mapping.threads, "thread"),
                      base::counted(made.slots.count, "slot"), made.slots.reason);
  const auto& applications = made.command.applications;
  for (unsigned index = 0; index < applications.size(); ++index)
    made.application_of.insert(made.application_of.end(), applications[index].ranks, index);
  job = std::move(made);
  return {};
}

Result report_pid(const Command& command) {
  if (command.report_pid.empty()) return {};
  if (command.report_pid == "-" || command.report_pid == "+") {
    std::fprintf(command.report_pid == "-" ? stdout : stderr, "%d\n", getpid());
    return {};
  }
  auto line = base::format("{}\n", getpid());
  int file = -1;
  NEAR_TRY(os::open_output_file(command.report_pid, file));
  Result wrote = os::empty_file(file, command.report_pid);
  if (wrote.ok()) wrote = os::write_all(file, line.data(), line.size());
  os::close_descriptor(file);
  return wrote;
}

Result announce(const Job& job) {
  const auto& command = job.command;
  if (command.input.several() && os::is_terminal(0))
    return base::fail(
        base::Code::unsupported,
        "only one rank can read from a terminal; for {} use cat | mpiexec, or give a file: <FILE",
        command.input.text());
  if (job.part.control < 0) NEAR_TRY(report_pid(command)); // on several machines, the first mpiexec does it
  if (command.print_rank_map) {
    std::string ranks;
    for (unsigned row = 0; row < command.mapping.ranks; ++row)
      ranks += (row == 0 ? "" : ",") + std::to_string(job.rank_of(row));
    std::printf("(%s:%s)\n\n", os::machine_name().c_str(), ranks.c_str());
  }
  if (command.display_machine)
    std::fputs((planning::head_text(job.machine, job.slots, job.plan) +
                planning::draw_text(job.machine, job.slots, job.plan))
                   .c_str(),
               stderr);
  if (command.display_allocation)
    std::fprintf(stderr, "mpiexec: %s: %s (%s)\n", os::machine_name().c_str(),
                 base::counted(job.slots.count, "slot").c_str(), job.slots.reason.c_str());
  return {};
}

std::string explain(const Job& job, char** environment) {
  if (job.command.explain_as_svg) return planning::draw_svg(job.machine, job.slots, job.plan);
  std::string text;
  unsigned first = 0; // row
  for (const auto& application : job.command.applications) {
    if (application.ranks == 0) continue; // none of its ranks runs on this machine
    std::string line;
    for (const auto& argument : application.arguments) line += (line.empty() ? "" : " ") + argument;
    const unsigned last = first + application.ranks - 1;
    os::CpuSet ranks;
    for (unsigned row = first; row <= last; ++row) ranks.add(job.rank_of(row));
    text += base::format("program: {} ({} {})\n", line, first == last ? "rank" : "ranks", ranks.text());
    if (!application.directory.empty()) text += base::format("  directory: {}\n", application.directory);
    for (const auto& [name, value] : job.command.settings) text += base::format("  {}={}\n", name, value);
    for (const auto& [name, value] : application.settings) text += base::format("  {}={}\n", name, value);
    const auto& inherited = application.inherited.chosen ? application.inherited : job.command.inherited;
    if (inherited.chosen)
      text += base::format("  environment: {} variables\n",
                           environment_for(job.command, application, environment).size());
    first = last + 1;
  }
  if (job.command.timeout_s > 0) text += base::format("timeout: {:.9g} s\n", job.command.timeout_s);
  text += base::format("standard input: {}\n", job.command.input.text());
  return text + planning::head_text(job.machine, job.slots, job.plan) +
         planning::draw_text(job.machine, job.slots, job.plan) + planning::bindings_text(job.plan) +
         planning::leaders_text(job.machine, job.plan);
}

} // namespace near::launch
