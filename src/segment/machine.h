// The machine of a job, as mpiexec has read it: once, for all ranks and for tools, none of which loads hwloc.
// Plain tables in the launcher's region, behind the rank table:
//
//   | MachineHead | processors | nodes | distances | cards |
//
// Written before the first rank starts and never changed; but for the cards, for which mpiexec looks when the
// job runs, since that takes milliseconds: so many as `card_count` says are there.
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

/// A network card or an accelerator.
struct MachineCard {
  char name[40];         ///< "mlx5_0", or its address on the bus
  Place near;            ///< the smallest parts that hold all processors which are nearest to it
  std::uint16_t network; ///< 1: a network card; 0: an accelerator
  std::uint16_t fast;    ///< 1: a network card with verbs
  std::uint16_t unused[5];
};
static_assert(sizeof(MachineCard) == 64);

struct alignas(8) MachineHead {
  std::uint32_t processor_count, node_count;
  Atomic<std::uint32_t> card_count;
};

/// Views of the tables.
struct Machine {
  std::span<MachineProcessor> processors;
  std::span<MachineNode> nodes;
  std::span<std::uint16_t>
      distances;                ///< between nodes by index, row by row, as the system tells; 10: its own
  std::span<MachineCard> cards; ///< those that are there
};

/// Cards beyond these are not told.
inline constexpr std::uint32_t most_cards = 64;

/// The launcher's: room for so many, zeroed, with `cards` empty. Fails when the launcher's region is too
/// small or memory is used up.
Result make_machine(Segment& segment, std::uint32_t processors, std::uint32_t nodes, Machine& machine);
/// The launcher's: adds the cards, at most once, behind tables of so many processors and nodes, for which
/// make_machine has made room.
void add_cards(const Segment& segment, std::uint32_t processors, std::uint32_t nodes,
               std::span<const MachineCard> cards);
/// False when nobody told of the machine: a program without mpiexec. What was written is not relied on.
bool find_machine(const Segment& segment, Machine& machine);

} // namespace near::segment
