// The only user of hwloc.
#include "topo/machine.h"

#include <algorithm>
#include <cerrno>
#include <hwloc.h>
#include <map>

namespace near::topo {
namespace {

struct Topology {
  Topology() { made = hwloc_topology_init(&handle) == 0; }
  ~Topology() {
    if (made) hwloc_topology_destroy(handle);
  }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  hwloc_topology_t handle{};
  bool made = false;
};

CpuSet to_set(hwloc_const_cpuset_t set) {
  CpuSet cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu))
    cpus.add(static_cast<unsigned>(cpu));
  return cpus;
}

Result load(Topology& topology) {
  // Processors that this process may not use are kept: what may be used is decided later, from one set.
  if (hwloc_topology_set_flags(topology.handle, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
      hwloc_topology_load(topology.handle) != 0)
    return base::fail_system("hwloc_topology_load", errno, "the machine's topology could not be read");
  return {};
}

void take_core(hwloc_topology_t topology, hwloc_obj_t object, Machine& machine,
               std::map<std::pair<unsigned, unsigned>, unsigned>& pretended_l3) {
  Core core;
  core.cpus = to_set(object->cpuset);
  core.index = static_cast<unsigned>(machine.cores.size());
  if (hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object))
    core.package = package->logical_index;
  if (int node = hwloc_bitmap_first(object->nodeset); node >= 0)
    if (hwloc_obj_t numa = hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(node)))
      core.numa = numa->logical_index;
  if (hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_L3CACHE, object))
    core.l3 = cache->logical_index;
  else
    core.l3 = pretended_l3.try_emplace({core.package, core.numa}, static_cast<unsigned>(pretended_l3.size()))
                  .first->second;
  machine.cores.push_back(std::move(core));
}

Result convert(hwloc_topology_t topology, Machine& machine) {
  Machine made;
  std::map<std::pair<unsigned, unsigned>, unsigned> pretended_l3;
  made.has_l3 = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L3CACHE) > 0;
  // Some virtual machines tell of processors, but of no cores.
  auto type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology, type, core)) != nullptr;)
    take_core(topology, core, made, pretended_l3);
  if (made.cores.empty()) return base::fail(base::Code::system, "hwloc found no processor on this machine");
  hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  for (hwloc_obj_t place : {package, hwloc_get_root_obj(topology)})
    if (const char* model = place != nullptr ? hwloc_obj_get_info_by_name(place, "CPUModel") : nullptr)
      made.processor = model;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    made.node_numbers.push_back(node->os_index);
  for (const auto& core : made.cores) {
    made.l3s = std::max(made.l3s, core.l3 + 1);
    made.packages = std::max(made.packages, core.package + 1);
  }
  made.numas = std::max(1u, static_cast<unsigned>(made.node_numbers.size()));
  machine = std::move(made);
  return {};
}

} // namespace

const char* level_name(Level level) {
  switch (level) {
  case Level::hwthread: return "hwthread";
  case Level::core: return "core";
  case Level::l3: return "l3";
  case Level::numa: return "numa";
  case Level::package: return "package";
  case Level::machine: break;
  }
  return "machine";
}

CpuSet Machine::cpus() const {
  CpuSet all;
  for (const auto& core : cores) all = all | core.cpus;
  return all;
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

Result read_machine(Machine& machine) {
  Topology topology;
  if (!topology.made) return base::fail_system("hwloc_topology_init", errno);
  NEAR_TRY(load(topology));
  return convert(topology.handle, machine);
}

Result recorded_machine(const std::string& description, Machine& machine) {
  Topology topology;
  if (!topology.made) return base::fail_system("hwloc_topology_init", errno);
  bool xml = description.find('<') != std::string::npos;
  int set = xml ? hwloc_topology_set_xmlbuffer(topology.handle, description.c_str(),
                                               static_cast<int>(description.size() + 1))
                : hwloc_topology_set_synthetic(topology.handle, description.c_str());
  if (set != 0)
    return base::fail(base::Code::invalid, "hwloc does not understand the machine '{}'",
                      description.substr(0, 80));
  NEAR_TRY(load(topology));
  return convert(topology.handle, machine);
}

} // namespace near::topo
