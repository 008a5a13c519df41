// A plan as text: for the OpenMP runtime, and for people.
#include "planning/plan.h"

#include "base/text.h"
#include "topo/nearest.h"

#include <algorithm>

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

namespace {

/// The distance between the device's own node and the farthest of the processors' nodes.
unsigned distance_to(const Machine& machine, const Device& device, const CpuSet& cpus) {
  const auto home = std::find_if(machine.cores.begin(), machine.cores.end(),
                                 [&](const Core& core) { return !(core.cpus & device.near).empty(); });
  unsigned farthest = 0;
  for (const auto& core : machine.cores)
    if (home != machine.cores.end() && !(core.cpus & cpus).empty())
      farthest = std::max(farthest, machine.distance(home->numa, core.numa));
  return farthest;
}

/// Why a rank leads: its distance, and that of the lowest rank, which would lead otherwise.
std::string reason_text(const std::vector<std::uint32_t>& distances, std::size_t leader, const Plan& plan) {
  constexpr std::uint32_t own_node = 10;
  std::string text =
      distances[leader] == own_node ? "on its node" : base::format("distance {}", distances[leader]);
  if (leader != 0) text += base::format(", rank {}: {}", plan.rank_of(0), distances[0]);
  return text;
}

} // namespace

std::vector<std::uint32_t> distances_to(const Machine& machine, const Device& nic, const Plan& plan) {
  std::vector<std::uint32_t> distances;
  for (const auto& binding : plan.bindings)
    distances.push_back(distance_to(machine, nic, binding.cpus.empty() ? machine.cpus() : binding.cpus));
  return distances;
}

std::string leaders_text(const Machine& machine, const Plan& plan) {
  if (machine.numas < 2) return "";
  std::string all;
  for (const auto& nic : machine.nics()) {
    const std::vector<std::uint32_t> distances = distances_to(machine, nic, plan);
    const auto leader = static_cast<std::size_t>(topo::nearest(distances));
    if (distances.empty() || distances[leader] == 0) continue;
    all += base::format("{}rank {} for {} ({})", all.empty() ? "leader between machines: " : ", ",
                        plan.rank_of(leader), nic.name, reason_text(distances, leader, plan));
  }
  return all.empty() ? all : all + "\n";
}

std::string bindings_text(const Plan& plan) {
  std::string all;
  for (std::size_t row = 0; row < plan.bindings.size(); ++row)
    all += base::format("rank {}: {}\n", plan.rank_of(row), plan.bindings[row].text);
  return all;
}

} // namespace near::planning
