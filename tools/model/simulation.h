// A broadcast or allreduce on many machines, simulated message by message: every rank executes its program (pattern/program.h), and
// events happen in the order of their times. Rounds of a ring, in which all ranks do the same, are simulated for all ranks at once.
#pragma once

#include "model/network.h"
#include "pattern/program.h"

namespace near::model {

struct Asked {
  choice::Collective collective = choice::Collective::broadcast;
  MPI_Count bytes = 8;
  int root = 0;             ///< of a broadcast
  bool leaders_near = true; ///< the ranks nearest to the NIC lead; otherwise the lowest ones
};

struct Simulated {
  double time = 0;            ///< nanoseconds until the last rank has ended
  std::uint64_t messages = 0; ///< between machines
  /// Bytes between leaders and NICs that have crossed a link between nodes, on all machines: inwards and outwards.
  double crossed_in = 0, crossed_out = 0;
};

/// The facts of the call for which the library would choose an algorithm.
choice::Facts facts_of(const Shape& shape, const Asked& asked);
/// Precondition: programs can be made for the call's collective (pattern::has_program).
Simulated simulate(const Network& network, const Shape& shape, const Asked& asked);

} // namespace near::model
