// Machines as hwloc reads or describes them. This file is the only user of hwloc.
#include "topo/machine.h"

#include "os/process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <hwloc.h>
#include <hwloc/cpukinds.h>
#include <hwloc/distances.h>
#include <hwloc/memattrs.h>
#include <map>
#include <sstream>

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

// Devices are searched for only on request, since that takes longer than everything else.
/// Excludes vendors' libraries: what the bus reports about GPUs is enough, and querying those libraries may
/// take seconds.
void leave_vendors_out(Topology& topology) {
  for (const char* name : {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"})
    (void)hwloc_topology_set_components(topology.handle, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, name);
}

Result load(Topology& topology, bool devices) {
  auto filter = devices ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT : HWLOC_TYPE_FILTER_KEEP_NONE;
  leave_vendors_out(topology);
  // Processors that this process may not use are kept: a single set decides later what may be used.
  if (hwloc_topology_set_flags(topology.handle, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
      hwloc_topology_set_io_types_filter(topology.handle, filter) != 0 ||
      hwloc_topology_load(topology.handle) != 0)
    return base::fail_system("hwloc_topology_load", errno);
  return {};
}

// The kind of memory as named by hwloc; newer versions name more kinds than older ones.
bool named_tier(hwloc_obj_t node, Tier& tier) {
  static constexpr std::pair<std::string_view, Tier> names[] = {
      {"MCDRAM", Tier::hbm}, {"HBM", Tier::hbm},          {"CXL-DRAM", Tier::slow},
      {"NVM", Tier::slow},   {"GPUMemory", Tier::device}, {"DRAM", Tier::dram}};
  std::string_view subtype = node->subtype != nullptr ? node->subtype : "";
  for (const auto& [name, meant] : names)
    if (subtype == name) {
      tier = meant;
      return true;
    }
  // Persistent memory that is used as ordinary memory has the kind of its DAX device.
  if (hwloc_obj_get_info_by_name(node, "DAXDevice") == nullptr) return false;
  tier = Tier::slow;
  return true;
}

// The bandwidth of `node` for the processors near it; 0 if the firmware does not report it.
std::uint64_t bandwidth_of(hwloc_topology_t topology, hwloc_obj_t node) {
  hwloc_location near;
  near.type = HWLOC_LOCATION_TYPE_CPUSET;
  near.location.cpuset = node->cpuset;
  hwloc_uint64_t value = 0;
  if (hwloc_memattr_get_value(topology, HWLOC_MEMATTR_ID_BANDWIDTH, node, &near, 0, &value) != 0) return 0;
  return value;
}

// A node without a name is compared with the first node of the same processors, which was present when the
// machine started.
Tier tier_of(hwloc_topology_t topology, hwloc_obj_t node) {
  Tier tier = Tier::dram;
  if (named_tier(node, tier)) return tier;
  for (hwloc_obj_t other = nullptr;
       (other = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, other)) != nullptr &&
       other != node;) {
    if (named_tier(other, tier) || !hwloc_bitmap_intersects(other->cpuset, node->cpuset)) continue;
    std::uint64_t own = bandwidth_of(topology, node), first = bandwidth_of(topology, other);
    if (own == 0 || first == 0) continue;
    if (own >= 2 * first) return Tier::hbm;
    if (2 * own <= first) return Tier::slow;
  }
  return Tier::dram;
}

void take_nodes(hwloc_topology_t topology, Machine& machine) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    Node node;
    node.number = object->os_index;
    node.tier = tier_of(topology, object);
    node.bytes = object->attr->numanode.local_memory;
    node.near = to_set(object->cpuset);
    machine.nodes.push_back(std::move(node));
  }
}

// The own node of a core: among the nearest, ordinary memory before other kinds, then the node that belongs
// to the fewest processors.
unsigned own_node(const Machine& machine, const CpuSet& core) {
  std::size_t best = machine.nodes.size();
  for (std::size_t index = 0; index < machine.nodes.size(); ++index) {
    const auto& node = machine.nodes[index];
    if ((node.near & core).empty()) continue;
    auto rank = [](const Node& at) { return std::pair(at.tier, at.near.count()); };
    if (best == machine.nodes.size() || rank(node) < rank(machine.nodes[best])) best = index;
  }
  return best < machine.nodes.size() ? static_cast<unsigned>(best) : 0;
}

void take_core(hwloc_topology_t topology, hwloc_obj_t object, Machine& machine,
               std::map<std::pair<unsigned, unsigned>, unsigned>& stand_in_l3) {
  Core core;
  core.cpus = to_set(object->cpuset);
  core.index = static_cast<unsigned>(machine.cores.size());
  if (hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object))
    core.package = package->logical_index;
  core.numa = own_node(machine, core.cpus);
  // Private caches are numbered after the caches that hwloc has counted.
  hwloc_obj_t l2 = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_L2CACHE, object);
  core.l2 = l2 != nullptr
                ? l2->logical_index
                : static_cast<unsigned>(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L2CACHE)) + core.index;
  if (hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_L3CACHE, object))
    core.l3 = cache->logical_index;
  else
    core.l3 = static_cast<unsigned>(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L3CACHE)) +
              stand_in_l3.try_emplace({core.package, core.numa}, static_cast<unsigned>(stand_in_l3.size()))
                  .first->second;
  if (machine.unlike_cores)
    core.speed =
        static_cast<unsigned>(std::max(hwloc_cpukinds_get_by_cpuset(topology, object->cpuset, 0), 0));
  machine.cores.push_back(std::move(core));
}

// Whether the cores are of kinds that differ by design. Kinds of the same design whose frequencies differ by
// a few percent, as in many servers, do not count.
bool has_unlike_cores(hwloc_topology_t topology) {
  int kinds = hwloc_cpukinds_get_nr(topology, 0);
  if (kinds < 2) return false;
  for (int kind = 0; kind < kinds; ++kind) {
    int efficiency = -1;
    unsigned count = 0;
    hwloc_info_s* infos = nullptr;
    if (hwloc_cpukinds_get_info(topology, static_cast<unsigned>(kind), nullptr, &efficiency, &count, &infos,
                                0) != 0 ||
        efficiency < 0)
      return false;
    bool by_design = std::any_of(infos, infos + count, [](const hwloc_info_s& info) {
      return std::string_view(info.name) == "CoreType" || std::string_view(info.name) == "LinuxCapacity";
    });
    if (!by_design) return false;
  }
  return true;
}

void take_distances(hwloc_topology_t topology, Machine& machine) {
  unsigned count = 1;
  hwloc_distances_s* found = nullptr;
  if (hwloc_distances_get_by_name(topology, "NUMALatency", &count, &found, 0) != 0 || count == 0) return;
  std::size_t nodes = machine.nodes.size();
  // A matrix of only some nodes would say nothing about the others.
  if (found->nbobjs == nodes) {
    machine.distances.resize(nodes * nodes);
    for (std::size_t row = 0; row < nodes; ++row)
      for (std::size_t column = 0; column < nodes; ++column)
        machine.distances[found->objs[row]->logical_index * nodes + found->objs[column]->logical_index] =
            static_cast<unsigned>(found->values[row * nodes + column]);
  }
  hwloc_distances_release(topology, found);
}

// By PCI device, since one NIC may appear as several OS devices: "mlx5_0" and "ib0".
void take_devices(hwloc_topology_t topology, Machine& machine) {
  constexpr unsigned class_3d = 0x0302, class_accelerator = 0x1200;
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_pcidev(topology, device)) != nullptr;) {
    Device made;
    unsigned kind = device->attr->pcidev.class_id;
    bool known = kind == class_3d || kind == class_accelerator;
    if (known) made.kind = Device::Kind::gpu;
    for (hwloc_obj_t part = device->io_first_child; part != nullptr; part = part->next_sibling) {
      if (part->type != HWLOC_OBJ_OS_DEVICE) continue;
      auto type = part->attr->osdev.type;
      bool verbs = type == HWLOC_OBJ_OSDEV_OPENFABRICS;
      if (!verbs && type != HWLOC_OBJ_OSDEV_NETWORK && !known) continue;
      if (made.name.empty() || (verbs && !made.verbs)) made.name = part->name != nullptr ? part->name : "";
      made.verbs = made.verbs || verbs;
      known = true;
    }
    if (!known) continue;
    if (made.name.empty()) {
      const auto& bus = device->attr->pcidev;
      made.name = base::format("{:04x}:{:02x}:{:02x}.{:x}", unsigned{bus.domain}, unsigned{bus.bus},
                               unsigned{bus.dev}, unsigned{bus.func});
    }
    made.near = to_set(hwloc_get_non_io_ancestor_obj(topology, device)->cpuset);
    machine.devices.push_back(std::move(made));
  }
}

Result convert(hwloc_topology_t topology, Machine& machine) {
  Machine made;
  std::map<std::pair<unsigned, unsigned>, unsigned> stand_in_l3;
  made.has_l2 = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L2CACHE) > 0;
  made.has_l3 = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L3CACHE) > 0;
  made.unlike_cores = has_unlike_cores(topology);
  made.recorded = hwloc_topology_is_thissystem(topology) == 0;
  if (made.recorded) made.allowed = to_set(hwloc_topology_get_allowed_cpuset(topology));
  take_nodes(topology, made);
  // Some virtual machines report processors but no cores.
  auto type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology, type, core)) != nullptr;)
    take_core(topology, core, made, stand_in_l3);
  if (made.cores.empty()) return base::fail(base::Code::system, "hwloc found no processor on this machine");
  hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  for (hwloc_obj_t holder : {package, hwloc_get_root_obj(topology)})
    if (const char* model = holder != nullptr ? hwloc_obj_get_info_by_name(holder, "CPUModel") : nullptr)
      made.processor = model;
  for (const auto& core : made.cores) {
    made.packages = std::max(made.packages, core.package + 1);
    if (core.numa < made.nodes.size()) made.nodes[core.numa].has_cores = true;
  }
  made.l2s = static_cast<unsigned>(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L2CACHE));
  made.l3s = static_cast<unsigned>(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L3CACHE));
  if (!made.has_l3) made.l3s = static_cast<unsigned>(stand_in_l3.size());
  made.numas = std::max(1u, static_cast<unsigned>(made.nodes.size()));
  take_distances(topology, made);
  take_devices(topology, made);
  machine = std::move(made);
  return {};
}

/// Tests in a child process whether hwloc can read a description, since it may crash or loop on invalid
/// input. A failure says what happened.
Result try_description(const std::function<void()>& read) {
  constexpr unsigned seconds = 20; // the largest real machine takes less than one second
  os::Ending ending;
  NEAR_TRY(os::try_in_child(read, seconds, ending));
  if (ending.by_signal() && (ending.signal() == SIGXCPU || ending.signal() == SIGKILL))
    return base::fail(base::Code::invalid, "hwloc did not finish within its limit of processor time");
  if (ending.by_signal() && ending.signal() == SIGALRM)
    return base::fail(base::Code::invalid,
                      "hwloc waited too long (is the description a pipe to which nobody writes?)");
  if (ending.by_signal())
    return base::fail(base::Code::invalid, "hwloc crashed (signal {})", ending.signal());
  if (ending.status() != 0) return base::fail(base::Code::invalid, "hwloc gave up");
  return {};
}

/// A variable that describes a machine to hwloc.
struct Variable {
  const char* name;
  bool is_a_description; ///< of a machine; otherwise it only says how to read one
  const char* advice;    ///< "set it to ..."
};
constexpr Variable variables[] = {
    {"HWLOC_XMLFILE", true, "a complete file, as lstopo FILE.xml writes it"},
    {"HWLOC_SYNTHETIC", true, "a smaller machine, such as \"package:2 core:4 pu:2\""},
    {"HWLOC_FSROOT", true, "a complete recording, as hwloc-gather-topology makes it"},
    {"HWLOC_CPUID_PATH", true, "a complete recording, as hwloc-gather-cpuid makes it"},
    {"HWLOC_COMPONENTS", false, "components that can read this machine"},
    {"HWLOC_THISSYSTEM", false, "1 if the description is of this machine"},
};

/// The variables that are set to anything.
std::vector<const Variable*> set_variables() {
  std::vector<const Variable*> found;
  for (const auto& variable : variables)
    if (const char* value = std::getenv(variable.name); value != nullptr && *value != 0)
      found.push_back(&variable);
  return found;
}

/// Extends the message of the latest failure: which variables caused it, and what to do about them.
Result blame(const std::vector<const Variable*>& given, Result failed) {
  const std::string reason(base::failure_text());
  if (given.empty()) return base::fail(failed.code(), "this machine cannot be read: {}", reason);
  if (given.size() > 1)
    return base::fail(
        failed.code(),
        "{}: with these variables, hwloc cannot read the machine: {}; unset them, or set {} to {}",
        machine_variables(), reason, given[0]->name, given[0]->advice);
  return base::fail(failed.code(),
                    "{}: with this variable, hwloc cannot read the machine: {}; unset it, or set it to {}",
                    machine_variables(), reason, given[0]->advice);
}

Result read_with_hwloc(Machine& machine, bool devices) {
  Topology topology;
  if (!topology.made) return base::fail_system("hwloc_topology_init", errno);
  // hwloc's libxml plugin ignores a broken file that only the variable names.
  const char* const file = std::getenv("HWLOC_XMLFILE");
  if (file != nullptr && *file != 0 && hwloc_topology_set_xml(topology.handle, file) != 0)
    return base::fail_system("hwloc_topology_set_xml", errno);
  NEAR_TRY(load(topology, devices));
  return convert(topology.handle, machine);
}

} // namespace

std::string machine_variables() {
  std::string text;
  constexpr std::size_t longest = 300; // enough for most paths
  for (const auto* variable : set_variables())
    text += base::format("{}{}={}", text.empty() ? "" : " ", variable->name,
                         std::string_view(std::getenv(variable->name)).substr(0, longest));
  return text;
}

Result read_machine(Machine& machine, bool devices) {
  // If a sandbox refuses this call, hwloc would repeat it endlessly.
  CpuSet allowed;
  NEAR_TRY(os::affinity_of(0, allowed));
  const auto given = set_variables();
  Result done;
  if (std::any_of(given.begin(), given.end(),
                  [](const auto* variable) { return variable->is_a_description; }))
    done = try_description([&] {
      Machine made;
      (void)read_with_hwloc(made, devices);
    });
  if (done.ok()) done = read_with_hwloc(machine, devices);
  return done.ok() ? done : blame(given, done);
}

Result machine_from_file(const std::string& path, Machine& machine) {
  std::ifstream file(path);
  std::string description;
  std::getline(file, description, '\0'); // all of it; bad() for a folder
  if (!file.is_open() || file.bad())
    return base::fail(base::Code::invalid, "cannot read the machine's file '{}'", path);
  if (description.find('<') == std::string::npos) {
    std::istringstream lines(description);
    description.clear();
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with('#')) description += (description.empty() ? "" : " ") + line;
  }
  // hwloc trusts its input; some invalid files make it crash or loop.
  Result done = try_description([&] {
    Machine made;
    (void)recorded_machine(description, made);
  });
  if (done.ok()) done = recorded_machine(description, machine);
  if (!done.ok())
    return base::fail(done.code(), "{}: this description of a machine cannot be read: {}", path,
                      std::string(base::failure_text()));
  return done;
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
  Machine made;
  NEAR_TRY(load(topology, true));
  NEAR_TRY(convert(topology.handle, made));
  // Set even if the environment tells hwloc that every description is of this system.
  made.recorded = true;
  if (made.allowed.empty()) made.allowed = to_set(hwloc_topology_get_allowed_cpuset(topology.handle));
  machine = std::move(made);
  return {};
}

} // namespace near::topo
