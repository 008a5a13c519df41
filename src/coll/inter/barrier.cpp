// Barrier between two groups: each group is complete, the leaders say so to each other, and tell their
// groups. Cost: (2 ceil(log2 p) + 1) alpha, p being the larger group.
#include "coll/algorithms.h"
#include "coll/inter/inter.h"

namespace near::coll {

Result inter_barrier(Groups& groups, const Call& call) {
  const Buffer token{nullptr, 0, &byte_type()};
  NEAR_TRY(barrier_dissemination(groups.own, call));
  if (groups.own.rank() == 0) NEAR_TRY(groups.across.send_receive(token, 0, token, 0));
  return barrier_dissemination(groups.own, call);
}

} // namespace near::coll
