// A machine as needed for mapping ranks: cores in order of nearness, each with its caches, NUMA node and
// package; memory; NICs and GPUs. Read once through hwloc; plain data afterwards.
#pragma once

#include "base/result.h"
#include "os/affinity.h"

#include <string>
#include <vector>

namespace near::topo {

using base::Result;
using os::CpuSet;

/// The levels at which processors are grouped, from the smallest to the largest.
enum class Level { hwthread, core, l2, l3, numa, package, machine };
/// The name of a level: "hwthread", "core", "l2", "l3", "numa", "package" or "machine".
const char* level_name(Level level);

/// One core. Indices count within the machine, from 0; neighbours have adjacent indices.
struct Core {
  CpuSet cpus; ///< its hardware threads, by the kernel's number
  unsigned index = 0;
  unsigned l2 = 0;   ///< if there is no L2, each core counts as having its own
  unsigned l3 = 0;   ///< if there is no L3, the cores of one node and package count as sharing one
  unsigned numa = 0; ///< index of its own node: the one with ordinary memory among the nearest
  unsigned package = 0;
  unsigned speed = 0; ///< if cores differ: greater is faster
};

/// Kinds of memory: ordinary, faster (HBM, MCDRAM), slower (CXL, persistent), and that of a GPU.
enum class Tier { dram, hbm, slow, device };
/// The name of a kind of memory for display: "DRAM", "HBM", "slow" or "device".
const char* tier_name(Tier tier);

/// One NUMA node.
struct Node {
  unsigned number = 0; ///< the kernel's
  Tier tier = Tier::dram;
  std::uint64_t bytes = 0; ///< 0: not known
  CpuSet near;             ///< the processors for which this node is the nearest of its kind
  bool has_cores = false;  ///< it is the own node (Core::numa) of at least one core
};

/// A NIC or a GPU (or another accelerator).
struct Device {
  enum class Kind { nic, gpu };
  std::string name; ///< "mlx5_0", or its bus address if it has no name
  Kind kind = Kind::nic;
  bool verbs = false; ///< a NIC with verbs; if there is any, other NICs do not carry MPI messages
  CpuSet near;        ///< the processors that are nearest
};

struct Machine {
  std::vector<Core> cores;
  std::vector<Node> nodes;
  /// Distances between nodes by index, row by row; 10 means local; empty if the system does not report them.
  std::vector<unsigned> distances;
  std::vector<Device> devices;
  unsigned l2s = 0, l3s = 0, numas = 0, packages = 0;
  bool has_l2 = false, has_l3 = false;
  bool unlike_cores = false; ///< Core::speed is set
  bool recorded = false;     ///< not the machine on which this process runs
  CpuSet allowed;            ///< for a recorded machine: the processors that jobs may use
  std::string processor;     ///< name of the model; "" if the system does not report it
  CpuSet cpus() const;
  /// The NICs that carry MPI messages: those with verbs, or all NICs if there are none with verbs.
  std::vector<Device> nics() const;
  /// The distance between two nodes: 10 for the same node; 20 for two nodes if the system does not report it.
  unsigned distance(unsigned one, unsigned other) const;
  /// Describes the machine: "1 package, 2 NUMA nodes, 4 L3 caches, 32 cores, 64 processors".
  std::string text() const;
};

/// The kernel's number of the node with this kind of memory that is nearest to the processors (if empty: to
/// the first core); among equally near nodes, the one with the most memory. -1 if there is none.
int nearest_node(const Machine& machine, const CpuSet& cpus, Tier tier);

/// The variables with which the environment describes a machine to hwloc, as "HWLOC_XMLFILE=file ..."; "" if
/// there are none.
std::string machine_variables();

/// Reads this machine, or the one that the environment describes to hwloc (machine_variables). NICs and GPUs
/// are included only with `devices`: finding them takes milliseconds. Descriptions are first tried in a child
/// process, since hwloc may crash or loop on them; a failure names the variables.
Result read_machine(Machine& machine, bool devices = false);
/// Reads a description of a machine: hwloc's synthetic form, such as "package:2 numa:2 l3:2 core:4 pu:2",
/// or its XML.
Result recorded_machine(const std::string& description, Machine& machine);
/// Reads such a description from a file. In the synthetic form, lines that begin with '#' are comments.
Result machine_from_file(const std::string& path, Machine& machine);

} // namespace near::topo
