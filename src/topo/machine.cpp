#include "topo/machine.h"

#include <algorithm>
#include <tuple>

namespace near::topo {

const char* level_name(Level level) {
  switch (level) {
  case Level::hwthread: return "hwthread";
  case Level::core: return "core";
  case Level::l2: return "l2";
  case Level::l3: return "l3";
  case Level::numa: return "numa";
  case Level::package: return "package";
  case Level::machine: break;
  }
  return "machine";
}

const char* tier_name(Tier tier) {
  switch (tier) {
  case Tier::dram: return "DRAM";
  case Tier::hbm: return "HBM";
  case Tier::slow: return "slow";
  case Tier::device: break;
  }
  return "device";
}

CpuSet Machine::cpus() const {
  CpuSet all;
  for (const auto& core : cores) all = all | core.cpus;
  return all;
}

std::vector<Device> Machine::nics() const {
  std::vector<Device> all, fast;
  for (const auto& device : devices) {
    if (device.kind != Device::Kind::nic) continue;
    all.push_back(device);
    if (device.verbs) fast.push_back(device);
  }
  return fast.empty() ? all : fast;
}

unsigned Machine::distance(unsigned one, unsigned other) const {
  if (one == other) return 10;
  return distances.empty() ? 20 : distances[std::size_t{one} * nodes.size() + other];
}

int nearest_node(const Machine& machine, const CpuSet& cpus, Tier tier) {
  auto is_ours = [&](const Core& core) { return cpus.empty() || !(core.cpus & cpus).empty(); };
  auto core = std::find_if(machine.cores.begin(), machine.cores.end(), is_ours);
  if (core == machine.cores.end()) return -1;
  // Being local to the processors comes first, since some firmware gives no distances for nodes without
  // processors.
  auto rank = [&](std::size_t index) {
    const auto& node = machine.nodes[index];
    return std::tuple((node.near & core->cpus).empty(),
                      machine.distance(core->numa, static_cast<unsigned>(index)), UINT64_MAX - node.bytes);
  };
  std::size_t best = machine.nodes.size();
  for (std::size_t index = 0; index < machine.nodes.size(); ++index)
    if (machine.nodes[index].tier == tier && (best == machine.nodes.size() || rank(index) < rank(best)))
      best = index;
  return best < machine.nodes.size() ? static_cast<int>(machine.nodes[best].number) : -1;
}

std::string Machine::text() const {
  auto counted = [](std::size_t count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
  };
  std::string text =
      counted(packages, "package", "packages") + ", " + counted(numas, "NUMA node", "NUMA nodes");
  if (has_l3) text += ", " + counted(l3s, "L3 cache", "L3 caches");
  return text + ", " + counted(cores.size(), "core", "cores") + ", " +
         counted(cpus().count(), "processor", "processors");
}

} // namespace near::topo
