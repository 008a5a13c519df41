// The phases of a call in two levels: the calls among the ranks of each machine, and among their leaders. The algorithms are in
// coll/*/by_machine.cpp.
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
  int nodes = 1; ///< NUMA nodes on which the ranks run
  bool operator==(const Here&) const = default;
};

struct Phase {
  bool among_leaders = false; ///< otherwise among the ranks of each machine
  bool chain = false;         ///< among leaders: chunks along a chain (chain.h); nothing is chosen
  int times = 1;              ///< once for each chunk of a chain
  Facts facts;                ///< of the call that makes up this phase
};

/// Adds the facts of the machines to the facts of a call.
void add_machines(Facts& facts, const Machines& machines);
/// Sets the facts of a phase to those of leaders, each of which is alone on its machine.
inline void set_among_leaders(Facts& facts) { facts.machines = facts.size; }

/// The phases of a call that has levels, in the order in which a leader goes through them. `call` has the facts of its machines.
/// A machine with one rank has no phases of its own.
std::vector<Phase> phases_of(const Facts& call, const Here& here);

} // namespace near::pattern
