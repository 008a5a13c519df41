// The machine of a job, as mpiexec has read it: once, for all ranks and for tools, none of which loads hwloc.
// Plain tables in the launcher's region, behind the rank table:
//
//   | MachineHead | processors | nodes | distances | devices |
//
// Written before the first rank starts and never changed; but for the devices, for which mpiexec looks when the
// job runs, since that takes milliseconds: so many as `device_count` says are there.
#pragma once

#include "segment/segment.h"

#include <span>

namespace near::segment {

/// One processor (hardware thread) and the parts of the machine that it belongs to, numbered as in Place.
struct MachineProcessor {
  std::uint16_t number; ///< the kernel's
  std::uint16_t core, l2, l3, numa, package;
};

/// One NUMA node. Place::numa is its index.
struct MachineNode {
  std::uint64_t bytes;  ///< 0: not known
  std::int32_t number;  ///< the kernel's
  std::uint32_t memory; ///< Tier; Tier::count: an accelerator's own
};

/// A NIC or a GPU (or another accelerator).
struct MachineDevice {
  char name[40];       ///< "mlx5_0", or its address on the bus
  Place near;          ///< the smallest parts that hold all processors which are nearest to it
  std::uint16_t nic;   ///< 1: a NIC; 0: a GPU or another accelerator
  std::uint16_t verbs; ///< 1: a NIC with verbs
  std::uint16_t unused[5];
};
static_assert(sizeof(MachineDevice) == 64);

struct alignas(8) MachineHead {
  std::uint32_t processor_count, node_count;
  Atomic<std::uint32_t> device_count;
};

/// Views of the tables.
struct Machine {
  std::span<MachineProcessor> processors;
  std::span<MachineNode> nodes;
  std::span<std::uint16_t>
      distances;                    ///< between nodes by index, row by row, as the system tells; 10: its own
  std::span<MachineDevice> devices; ///< those that are there
};

/// Devices beyond these are not published.
inline constexpr std::uint32_t most_devices = 64;

/// The launcher's: room for so many, zeroed, with `devices` empty. Fails when the launcher's region is too
/// small or memory is used up.
Result make_machine(Segment& segment, std::uint32_t processors, std::uint32_t nodes, Machine& machine);
/// The launcher's: adds the devices, at most once, behind tables of so many processors and nodes, for which
/// make_machine has made room.
void add_devices(const Segment& segment, std::uint32_t processors, std::uint32_t nodes,
                 std::span<const MachineDevice> devices);
/// False when nobody told of the machine: a program without mpiexec. What was written is not relied on.
bool find_machine(const Segment& segment, Machine& machine);

} // namespace near::segment
