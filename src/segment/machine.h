// The machine of a job, read by mpiexec once for all ranks and tools, so that none of them loads hwloc. Plain
// tables in the launcher's region, after the rank table:
//
//   | MachineHead | processors | nodes | distances | devices |
//
// Written before the first rank starts and never changed, except for the devices: mpiexec searches for them
// while the job runs, since that takes milliseconds. `device_count` of them are valid.
#pragma once

#include "segment/segment.h"

#include <span>

namespace near::segment {

/// One processor (hardware thread) and the parts of the machine that contain it, numbered as in Location.
struct MachineProcessor {
  std::uint16_t number; ///< the kernel's number
  std::uint16_t core, l2, l3, numa, package;
};

/// One NUMA node. Location::numa is its index.
struct MachineNode {
  std::uint64_t bytes;  ///< 0 if unknown
  std::int32_t number;  ///< the kernel's number
  std::uint32_t memory; ///< Tier; Tier::count for an accelerator's own memory
};

/// A NIC or a GPU (or another accelerator).
struct MachineDevice {
  char name[40];       ///< "mlx5_0", or its bus address
  Location near;       ///< the smallest parts that contain all processors nearest to it
  std::uint16_t nic;   ///< 1 for a NIC; 0 for a GPU or another accelerator
  std::uint16_t verbs; ///< 1 for a NIC with verbs
  std::uint16_t unused[5];
};
static_assert(sizeof(MachineDevice) == 64);

struct alignas(8) MachineHead {
  std::uint32_t processor_count, node_count;
  Atomic<std::uint32_t> device_count;
};

/// Spans of the tables.
struct Machine {
  std::span<MachineProcessor> processors;
  std::span<MachineNode> nodes;
  /// Between nodes by index, row by row, as reported by the kernel; 10: to itself.
  std::span<std::uint16_t> distances;
  std::span<MachineDevice> devices; ///< those found so far
};

/// At most this many devices are published.
inline constexpr std::uint32_t most_devices = 64;

/// Launcher: makes space for this many processors and nodes, zeroed, with `devices` empty. Fails if the
/// launcher's region is too small or memory runs out.
Result make_machine(Segment& segment, std::uint32_t processors, std::uint32_t nodes, Machine& machine);
/// Launcher: adds the devices; call it at most once. `processors` and `nodes` must be as for make_machine().
void add_devices(const Segment& segment, std::uint32_t processors, std::uint32_t nodes,
                 std::span<const MachineDevice> devices);
/// Finds the description of the machine. Returns false if there is none, as in a program started without
/// mpiexec. Checks the contents.
bool find_machine(const Segment& segment, Machine& machine);

} // namespace near::segment
