#include "planning/binding.h"

#include "base/text.h"

namespace near::planning {
namespace {

std::string cpus_text(const CpuSet& cpus) { return (cpus.count() == 1 ? "cpu " : "cpus ") + cpus.text(); }

// "node 0"; "nodes 0,1" if a rank's cores do not fit in one.
std::string nodes_text(const Machine& machine, const Chunk& chunk) {
  CpuSet numbers;
  for (const auto& unit : chunk) {
    unsigned numa = unit.core->numa;
    numbers.add(numa < machine.nodes.size() ? machine.nodes[numa].number : numa);
  }
  return (numbers.count() == 1 ? "node " : "nodes ") + numbers.text();
}

// Sets binding.cpus, and returns the text of the binding.
std::string bind(const Machine& machine, const Chunk& chunk, const Units& all, const Request& request,
                 Binding& binding) {
  std::string node = nodes_text(machine, chunk);
  if (!request.bind) return base::format("not bound ({})", cpus_text(cpus_of(all)));
  switch (request.bind_to) {
  case Level::hwthread:
  case Level::core: {
    binding.cpus = cpus_of(chunk);
    CpuSet cores;
    for (const auto& unit : chunk) cores.add(unit.core->index);
    const char* word = cores.count() == 1 ? "core" : "cores";
    return base::format("{} {} ({}), {}", word, cores.text(), cpus_text(binding.cpus), node);
  }
  default: break;
  }
  CpuSet numbers; // of the domains that contain the rank's cores
  for (const auto& unit : chunk) numbers.add(domain_of(*unit.core, request.bind_to));
  Units domain;
  for (const auto& unit : all)
    if (numbers.has(domain_of(*unit.core, request.bind_to))) domain.push_back(unit);
  binding.cpus = cpus_of(domain);
  if (request.bind_to != Level::machine) node = nodes_text(machine, domain);
  if (request.bind_to == Level::l2)
    return base::format("L2 {} ({}), {}", numbers.text(), cpus_text(binding.cpus), node);
  if (request.bind_to == Level::l3)
    return base::format("L3 {} ({}), {}", numbers.text(), cpus_text(binding.cpus), node);
  if (request.bind_to == Level::package)
    return base::format("{} {} ({}), first core on {}", numbers.count() == 1 ? "package" : "packages",
                        numbers.text(), cpus_text(binding.cpus), nodes_text(machine, {chunk.front()}));
  if (request.bind_to == Level::machine) return base::format("the machine ({})", cpus_text(binding.cpus));
  return base::format("{} ({})", node, cpus_text(binding.cpus));
}

} // namespace

Binding binding_of(const Machine& machine, const Chunk& chunk, const Units& all, const Request& request) {
  Binding binding;
  binding.node = chunk.front().core->numa;
  binding.home = cpus_of(chunk);
  binding.text = bind(machine, chunk, all, request, binding);
  return binding;
}

} // namespace near::planning
