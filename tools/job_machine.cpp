// `near info --job`: the machine of a running job, as mpiexec has published it for ranks and tools.
#include "base/text.h"
#include "os/affinity.h"
#include "segment/machine.h"
#include "tools/commands.h"

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

namespace near::tools {

namespace {

using segment::Machine;

/// "2 packages, 4 NUMA nodes, 8 L3 caches, 64 cores, 128 processors".
std::string parts_text(const Machine& machine) {
  std::set<std::uint16_t> packages, caches, cores;
  for (const auto& processor : machine.processors) {
    packages.insert(processor.package);
    caches.insert(processor.l3);
    cores.insert(processor.core);
  }
  auto counted = [](std::size_t count, const char* one) {
    return base::format("{} {}{}", count, one, count == 1 ? "" : "s");
  };
  return counted(packages.size(), "package") + ", " + counted(machine.nodes.size(), "NUMA node") + ", " +
         counted(caches.size(), "L3 cache") + ", " + counted(cores.size(), "core") + ", " +
         counted(machine.processors.size(), "processor");
}

const char* memory_name(std::uint32_t memory) {
  static constexpr const char* names[] = {"DRAM", "HBM", "slow"};
  return memory < std::size(names) ? names[memory] : "of a GPU";
}

/// The smallest known part.
std::string location_text(const segment::Location& location, const Machine& machine) {
  constexpr auto several = segment::Location::several;
  if (location.numa != several && location.numa < machine.nodes.size())
    return base::format("node {}", machine.nodes[location.numa].number);
  if (location.package != several) return base::format("package {}", location.package);
  return "no part of the machine in particular";
}

void print_nodes(const Machine& machine) {
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    const auto& node = machine.nodes[i];
    os::CpuSet its;
    for (const auto& processor : machine.processors)
      if (processor.numa == i) its.add(processor.number);
    std::printf("node %d: %s, %.1f GiB, %s%s\n", node.number, memory_name(node.memory),
                static_cast<double>(node.bytes) / (1u << 30), its.empty() ? "no processors" : "processors ",
                its.empty() ? "" : its.text().c_str());
  }
}

void print_distances(const Machine& machine) {
  std::string line = "distances:";
  for (const auto& node : machine.nodes) line += base::format(" {:>4}", node.number);
  std::puts(line.c_str());
  for (std::size_t from = 0; from < machine.nodes.size(); ++from) {
    line = base::format("{:>10}", machine.nodes[from].number);
    for (std::size_t to = 0; to < machine.nodes.size(); ++to)
      line += base::format(" {:>4}", machine.distances[from * machine.nodes.size() + to]);
    std::puts(line.c_str());
  }
}

void print_devices(const Machine& machine) {
  for (const auto& device : machine.devices) {
    std::string name(device.name, strnlen(device.name, sizeof device.name));
    const char* kind = device.nic == 0 ? "GPU" : device.verbs != 0 ? "NIC with verbs" : "NIC";
    std::printf("device %s: %s, nearest to %s\n", base::printable(name).c_str(), kind,
                location_text(device.near, machine).c_str());
  }
}

} // namespace

int job_machine(std::int32_t launcher) {
  segment::Segment segment;
  if (!segment::attach_job(launcher, segment).ok()) return complain();
  Machine machine;
  if (!segment::find_machine(segment, machine)) {
    std::puts("The machine of this job is not known: it was started without mpiexec.");
    return 0;
  }
  std::printf("%s\n", parts_text(machine).c_str());
  print_nodes(machine);
  if (machine.nodes.size() > 1) print_distances(machine);
  print_devices(machine);
  return 0;
}

} // namespace near::tools
