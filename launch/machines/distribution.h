// Which machine each rank of a job runs on.
#pragma once

#include "base/result.h"

#include <span>
#include <vector>

namespace near::machines {

using base::Result;

/// What one program of the command line asks for.
struct Share {
  unsigned ranks = 0;
  std::vector<unsigned> on = {}; ///< the machines that it may use, in the order of their use; empty: all
  unsigned each = 0;             ///< ranks on each of them in turn; 0: as many as it has slots
  bool each_is_limit = false;    ///< no machine may have more than `each`
};

/// The slots of a machine.
struct Slots {
  unsigned count = 1;
  bool chosen = false; ///< the user has said how many
};

/// Determines the machine of each rank; the ranks of the programs follow one another.
///
/// - With `each`, every machine in turn takes so many ranks, and again from the first one.
/// - If the user has chosen the slots of all machines, these are filled in turn, and again from the first one.
/// - Otherwise each machine takes a block of ranks, as large as its part of all slots.
///
/// A program goes on where the previous one has stopped if both use the same machines in the same way. Fails with
/// Code::invalid if a limit does not permit that many ranks.
Result distribute(std::span<const Slots> machines, std::span<const Share> programs,
                  std::vector<unsigned>& machine_of);

} // namespace near::machines
