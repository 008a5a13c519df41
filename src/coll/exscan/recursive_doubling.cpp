// Exclusive scan: every vector moves one rank up, then the ranks from 1 on scan inclusively
// (scan/recursive_doubling). Cost: (1 + ceil(log2 (p-1))) (alpha + n beta) + ceil(log2 (p-1)) n gamma.
#include "coll/algorithms.h"

namespace near::coll {

Result exscan_recursive_doubling(CollectiveGroup& group, const Call& call) {
  const int rank = group.rank(), size = group.size();
  const int above = rank + 1;
  if (rank == 0) return above < size ? group.send(call.send, above) : Result{}; // rank 0 has no result

  Partial partial(group, *call.operation, call.send, call.receive.address);
  Buffer incoming;
  NEAR_TRY(partial.make_incoming(incoming));
  if (above < size)
    NEAR_TRY(group.send_receive(call.send, above, incoming, rank - 1));
  else
    NEAR_TRY(group.receive(incoming, rank - 1));
  partial.take_incoming();
  NEAR_TRY(scan_among(group, partial, 1));
  return partial.settle();
}

} // namespace near::coll
