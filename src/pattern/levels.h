// The phases of a call in two levels: what the ranks of each machine call, and what their leaders call among themselves. The algorithms
// are in coll/*/by_machine.cpp.
#pragma once

#include "choice/choice.h"
#include "pattern/machines.h"

#include <vector>

namespace near::pattern {

using choice::Collective;
using choice::Facts;

/// What the choice on a machine depends on, apart from the call.
struct Here {
  int ranks = 1;
  int nodes = 1; ///< NUMA nodes on which they run
  bool operator==(const Here&) const = default;
};

struct Phase {
  bool among_leaders = false; ///< else among the ranks of each machine
  bool chain = false;         ///< among leaders: chunks along a chain (chain.h), for which nothing is chosen
  int times = 1;              ///< once for each chunk of a chain
  Facts facts;                ///< of the call that is this phase
};

/// Adds to the facts of a call those of the machines.
void add_machines(Facts& facts, const Machines& machines);
/// Makes the facts of a phase those of leaders, each of whom is alone on its machine.
inline void set_among_leaders(Facts& facts) { facts.machines = facts.size; }

/// The phases of a call that has levels, in the order in which a leader goes through them; `call` has the facts of its machines.
/// A machine with one rank has none of its own.
std::vector<Phase> phases_of(const Facts& call, const Here& here);

} // namespace near::pattern
