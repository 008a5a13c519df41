// What is given to ranks: cores, or single hardware threads of them.
#pragma once

#include "planning/plan.h"

#include <vector>

namespace near::planning {

/// A core, or one hardware thread of it, as far as it may be used.
struct Unit {
  CpuSet cpus;
  const Core* core = nullptr;
};
using Units = std::vector<Unit>;
/// The units of one rank.
using Chunk = Units;

/// The machine's order of units.
bool comes_before(const Unit& one, const Unit& other);

/// The number of the domain of this level that the core belongs to.
unsigned domain_of(const Core& core, Level level);

/// What may be used of each core, or with `hwthreads` each hardware thread that may be used.
Units usable_units(const Machine& machine, const CpuSet& allowed, bool hwthreads);

/// The units by domain, in order of first appearance.
std::vector<Units> grouped(const Units& units, Level level);

/// How many ranks of so many units each find all of theirs within one group.
unsigned capacity_of(const Units& group, unsigned threads);

/// The processors of all these units.
CpuSet cpus_of(const Units& units);

} // namespace near::planning
