// A machine's processors as placement needs them: cores in order of nearness, each with the last-level cache,
// the NUMA node and the package that it belongs to. Read once through hwloc; plain data from then on.
#pragma once

#include "base/result.h"
#include "os/affinity.h"

#include <string>
#include <vector>

namespace near::topo {

using base::Result;
using os::CpuSet;

/// What groups processors, from the smallest to the largest.
enum class Level { hwthread, core, l3, numa, package, machine };
/// "hwthread", "core", "l3", "numa", "package", "machine".
const char* level_name(Level level);

/// One core. Indices count within the machine, from 0, neighbours next to each other.
struct Core {
  CpuSet cpus; ///< its hardware threads, by the kernel's number
  unsigned index = 0;
  unsigned l3 = 0;   ///< where there is no L3, the cores of one node and package count as sharing one
  unsigned numa = 0; ///< the nearest node, by hwloc's order
  unsigned package = 0;
};

struct Machine {
  std::vector<Core> cores;
  unsigned l3s = 0, numas = 0, packages = 0;
  bool has_l3 = false;
  std::string processor; ///< its model's name; "" when the system does not tell
  /// The kernel's number of each node, by index.
  std::vector<unsigned> node_numbers;
  CpuSet cpus() const;
  /// "1 package, 2 NUMA nodes, 4 L3 caches, 32 cores, 64 processors".
  std::string text() const;
};

/// This machine.
Result read_machine(Machine& machine);
/// A machine that hwloc describes: its synthetic form, such as "package:2 numa:2 l3:2 core:4 pu:2", or its
/// XML.
Result recorded_machine(const std::string& description, Machine& machine);

} // namespace near::topo
