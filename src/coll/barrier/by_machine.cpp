// Barrier in two levels: each leader waits for the ranks of its machine, then for the other leaders, and then tells its ranks.
// Cost: ceil(log2 m) alpha between m machines, and two waits of each rank on its own.
#include "coll/levels.h"

namespace near::coll {

Result barrier_by_machine(CollectiveGroup& group, const Call& call) {
  Levels levels(group, call);
  Buffer token;
  NEAR_TRY(group.scratch_bytes(1, token));
  NEAR_TRY(levels.reduce(token, token.address, *datatype::find_operation(MPI_BOR)));
  if (levels.leads()) NEAR_TRY(run(levels.across(), barrier_call()));
  return levels.broadcast(token);
}

} // namespace near::coll
