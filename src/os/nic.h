// Where a NIC is, and how far a process is from it. Read from /sys, since hwloc would take milliseconds in every process.
#pragma once

#include "os/affinity.h"

#include <string>
#include <string_view>

namespace near::os {

/// The kernel's number of the NUMA node to which a NIC is attached. -1 if it is unknown, or if an interface made of others
/// (a bond, a VLAN) has them on several nodes. `name` is that of an interface ("eth0", "mlx5_0"), or a PCI address
/// ("0000:65:00.0"). `root` is prefixed to the path, for tests.
int node_of_nic(std::string_view name, const std::string& root = {});

/// How far these processors are from the node's memory and devices: the kernel's distance (10 means on the node) for
/// the farthest of them. 0 if it is unknown, or if the machine has one node.
unsigned distance_to_node(int node, const CpuSet& cpus, const std::string& root = {});

} // namespace near::os
