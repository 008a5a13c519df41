// Broadcast from a root in one group to all of the other: over the other group's leader.
// Cost: (1 + ceil(log2 p)) (alpha + n beta), p being the receiving group.
#include "coll/algorithms.h"
#include "coll/inter/inter.h"

namespace near::coll {

Result inter_broadcast(Groups& groups, const Call& call) {
  if (call.root == MPI_PROC_NULL) return {};
  if (call.root == MPI_ROOT) return groups.across.send(call.receive, 0);
  if (groups.own.rank() == 0) NEAR_TRY(groups.across.receive(call.receive, call.root));
  Call inside = call;
  inside.root = 0;
  return broadcast_binomial(groups.own, inside);
}

} // namespace near::coll
