// Allreduce of long vectors around a ring. P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms
// for clusters of workstations", Journal of Parallel and Distributed Computing 69 (2009). Cost: 2 (p-1) alpha
// + 2 n (p-1)/p beta + n (p-1)/p gamma. Each slice is reduced in one order and then copied, so every rank
// gets the same bits. Each rank is read by one other.
#include "coll/ring.h"
#include "coll/algorithms.h"

namespace near::coll {

Result allreduce_ring(CollectiveGroup& group, const Call& call) {
  NEAR_TRY(ring_reduce_scatter(group, *call.operation, call.send, call.receive));
  return ring_allgather(group, call.receive);
}

} // namespace near::coll
