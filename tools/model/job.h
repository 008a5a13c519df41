// The machines of an imaginary job: `--machines` of near info and near model.
#pragma once

#include "pattern/machines.h"
#include "topo/machine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace near::model {

using base::Result;

/// Consecutive machines of one kind.
struct MachineKind {
  int count = 1;
  int ranks = 0;    ///< on each machine
  std::string file; ///< describes the machine, as for `mpiexec --machine`; "": nothing is known about it
  bool operator==(const MachineKind&) const = default;
};

/// What the options say. `ranks`: in total, or 0; `ranks_each`: used where neither gives a number.
struct MachinesRequest {
  std::string_view text;
  unsigned ranks = 0, ranks_each = 1;
};
/// The most ranks of a job of several machines, and of one machine.
inline constexpr int most_ranks = 1 << 20, most_ranks_each = 4096;
/// Reads "64" (machines; the ranks are distributed evenly), "64x8" (8 ranks each), "4,4,2" (the ranks on each), or combinations
/// such as "3x8:big.xml,4:small.xml". There must be at least two machines. The message of a failure says what is wrong.
Result parse_machines(const MachinesRequest& request, std::vector<MachineKind>& kinds);

/// The machine of each rank: in blocks ("machine 0 has ranks 0 to 3"), or in turns.
std::vector<std::uint32_t> machine_of_ranks(const std::vector<MachineKind>& kinds, bool in_turns);
/// "4 machines with 2 ranks each", or "3 machines with 4, 4 and 2 ranks".
std::string machines_text(const std::vector<MachineKind>& kinds);

/// Where the ranks of a machine run, if the machine is described: as mpiexec places them.
struct Placement {
  std::vector<std::uint32_t> distances; ///< of each rank from its NIC; 0: unknown
  std::vector<std::string> nics;        ///< the NIC of each rank: the nearest one
  std::vector<unsigned> nodes;          ///< the node of each rank
  unsigned node_count = 1;              ///< the number of different nodes on which they run
};
/// Fails if the file cannot be read, or if the ranks do not fit; the message names the file.
Result place_on(const MachineKind& kind, Placement& placement);

/// A job of several machines.
struct Job {
  std::vector<MachineKind> kinds;
  std::vector<Placement> placements; ///< by kind
  std::vector<std::size_t> kind_of;  ///< by machine
  pattern::Machines machines;        ///< with the leaders that these machines elect

  const MachineKind& kind(int machine) const { return kinds[kind_of[static_cast<std::size_t>(machine)]]; }
  const Placement& placement(int machine) const {
    return placements[kind_of[static_cast<std::size_t>(machine)]];
  }
};
/// Places the ranks, and lets each machine elect its leader as the library does. `nodes`: NUMA nodes of machines without a description.
Result imagine(std::vector<MachineKind> kinds, bool in_turns, unsigned nodes, std::optional<Job>& job);

} // namespace near::model
