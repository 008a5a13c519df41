// A plan as text: for the OpenMP runtime, and for people.
#include "planning/plan.h"

#include "base/text.h"

namespace near::planning {

std::string openmp_places(const Machine& machine, const Binding& binding) {
  std::string text;
  if (binding.whole_domain) return text;
  for (const auto& core : machine.cores) {
    CpuSet cpus = core.cpus & binding.home;
    if (cpus.empty()) continue;
    std::string list;
    for (unsigned cpu : cpus.members()) list += (list.empty() ? "" : ",") + std::to_string(cpu);
    text += (text.empty() ? "{" : ",{") + list + "}";
  }
  return text;
}

std::string head_text(const Machine& machine, const Slots& slots, const Plan& plan) {
  std::string all = "machine: " + machine.text() + "\n";
  all += base::format("slots: {} ({})\n", slots.count, slots.reason);
  for (const auto& note : plan.notes) all += note + "\n";
  return all;
}

std::string bindings_text(const Plan& plan) {
  std::string all;
  for (std::size_t row = 0; row < plan.bindings.size(); ++row)
    all += base::format("rank {}: {}\n", plan.rank_of(row), plan.bindings[row].text);
  return all;
}

} // namespace near::planning
