// Allreduce through rank 0: it takes the vectors in rank order and sends the result to all. Cost:
// 2 (p - 1) (alpha + n beta) + (p - 1) n gamma at rank 0; each other rank waits once. For ranks that share
// processors, as in barrier/linear.cpp.
#include "coll/algorithms.h"

namespace near::coll {

Result allreduce_linear(CollectiveGroup& group, const Call& call) {
  if (group.rank() != 0) {
    NEAR_TRY(group.send(call.send, 0));
    return group.receive(call.receive, 0);
  }
  Partial partial(group, *call.operation, call.send, call.receive.address);
  Buffer incoming;
  for (int rank = 1; rank < group.size(); ++rank) {
    NEAR_TRY(partial.make_incoming(incoming));
    NEAR_TRY(group.receive(incoming, rank));
    NEAR_TRY(partial.absorb_higher());
  }
  NEAR_TRY(partial.settle());
  for (int rank = 1; rank < group.size(); ++rank) NEAR_TRY(group.send(call.receive, rank));
  return {};
}

} // namespace near::coll
