// Determines on which machine each rank of a job runs.
#pragma once

#include "base/result.h"

#include <span>
#include <vector>

namespace near::machines {

using base::Result;

/// What one program on the command line requests.
struct Share {
  unsigned ranks = 0;
  std::vector<unsigned> on = {}; ///< the machines that it may use, in order of use; empty: all
  unsigned each = 0;             ///< ranks on each of them in turn; 0: as many as it has slots
  bool each_is_limit = false;    ///< no machine may have more than `each`
};

/// The slots of a machine.
struct Slots {
  unsigned count = 1;
  bool chosen = false; ///< whether the user chose the number
};

/// Determines the machine of each rank; the ranks of the programs are consecutive.
///
/// - With `each`, every machine in turn takes this many ranks, starting again with the first machine.
/// - If the user has chosen the slots of all machines, these are filled in turn, starting again with the first machine.
/// - Otherwise each machine takes a block of ranks in proportion to its share of all slots.
///
/// A program continues where the previous one stopped if both use the same machines in the same way. Fails with
/// Code::invalid if a limit does not permit that many ranks.
Result distribute(std::span<const Slots> machines, std::span<const Share> programs,
                  std::vector<unsigned>& machine_of);

} // namespace near::machines
