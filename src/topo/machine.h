// A machine as placement needs it: cores in order of nearness, each with the caches, the NUMA node and the
// package that it belongs to; memory; devices. Read once through hwloc; plain data from then on.
#pragma once

#include "base/result.h"
#include "os/affinity.h"

#include <string>
#include <vector>

namespace near::topo {

using base::Result;
using os::CpuSet;

/// What groups processors, from the smallest to the largest.
enum class Level { hwthread, core, l2, l3, numa, package, machine };
/// "hwthread", "core", "l2", "l3", "numa", "package", "machine".
const char* level_name(Level level);

/// One core. Indices count within the machine, from 0, neighbours next to each other.
struct Core {
  CpuSet cpus; ///< its hardware threads, by the kernel's number
  unsigned index = 0;
  unsigned l2 = 0;   ///< where there is no L2, each core counts as having one
  unsigned l3 = 0;   ///< where there is no L3, the cores of one node and package count as sharing one
  unsigned numa = 0; ///< index of the node whose memory is its own: the ordinary one among the nearest
  unsigned package = 0;
  unsigned speed = 0; ///< on a machine with unlike cores: greater is faster
};

/// Kinds of memory: the ordinary one, faster (HBM, MCDRAM), slower (CXL, persistent), a graphics processor's.
enum class Tier { dram, hbm, slow, device };
/// "DRAM", "HBM", "slow", "device".
const char* tier_name(Tier tier);

/// One NUMA node.
struct Node {
  unsigned number = 0; ///< the kernel's
  Tier tier = Tier::dram;
  std::uint64_t bytes = 0; ///< 0: not known
  CpuSet near;             ///< the processors to which no node of its kind is nearer
  bool has_cores = false;  ///< some core's own memory
};

/// A NIC or a GPU (or another accelerator).
struct Device {
  enum class Kind { nic, gpu };
  std::string name; ///< "mlx5_0", or its address where it has no name
  Kind kind = Kind::nic;
  bool verbs = false; ///< a NIC with verbs: other NICs do not carry MPI where there are any
  CpuSet near;        ///< the processors that are nearest
};

struct Machine {
  std::vector<Core> cores;
  std::vector<Node> nodes;
  /// Between nodes by index, row by row, 10 meaning its own; empty when the system does not tell.
  std::vector<unsigned> distances;
  std::vector<Device> devices;
  unsigned l2s = 0, l3s = 0, numas = 0, packages = 0;
  bool has_l2 = false, has_l3 = false;
  bool unlike_cores = false; ///< Core::speed says something
  bool recorded = false;     ///< not the machine that this process runs on
  CpuSet allowed;            ///< of a recorded one: the processors that its jobs may use
  std::string processor;     ///< its model's name; "" when the system does not tell
  CpuSet cpus() const;
  /// The NICs that carry MPI messages: those with verbs, or all NICs when there are none.
  std::vector<Device> nics() const;
  /// 10 for a node and itself, 20 for two where the system does not tell.
  unsigned distance(unsigned one, unsigned other) const;
  /// "1 package, 2 NUMA nodes, 4 L3 caches, 32 cores, 64 processors".
  std::string text() const;
};

/// The kernel's number of the node with memory of this kind that is nearest to the processors (empty: to the
/// first core); of several the one with most memory. -1 when there is none.
int nearest_node(const Machine& machine, const CpuSet& cpus, Tier tier);

/// This machine; or the one that hwloc was told of in the environment (HWLOC_XMLFILE and its kin). Its devices
/// only with `devices`: looking for them takes milliseconds.
Result read_machine(Machine& machine, bool devices = false);
/// A machine that hwloc describes: its synthetic form, such as "package:2 numa:2 l3:2 core:4 pu:2", or its
/// XML.
Result recorded_machine(const std::string& description, Machine& machine);
/// The same from a file, in whose synthetic form lines that begin with '#' are comments.
Result machine_from_file(const std::string& path, Machine& machine);

} // namespace near::topo
