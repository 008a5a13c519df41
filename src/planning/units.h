// The units that ranks receive: cores, or single hardware threads.
#pragma once

#include "planning/plan.h"

#include <vector>

namespace near::planning {

/// The allowed part of a core, or one hardware thread of it.
struct Unit {
  CpuSet cpus;
  const Core* core = nullptr;
};
using Units = std::vector<Unit>;
/// The units of one rank.
using Chunk = Units;

/// Compares units by their order in the machine.
bool comes_before(const Unit& one, const Unit& other);

/// The number of the domain of this level to which the core belongs.
unsigned domain_of(const Core& core, Level level);

/// The allowed part of each core or, with `hwthreads`, each allowed hardware thread.
Units usable_units(const Machine& machine, const CpuSet& allowed, bool hwthreads);

/// The units by domain, in order of first appearance.
std::vector<Units> grouped(const Units& units, Level level);

/// How many ranks with `threads` units each fit into one group.
unsigned capacity_of(const Units& group, unsigned threads);

/// The processors of all these units.
CpuSet cpus_of(const Units& units);

} // namespace near::planning
