// Reduction of long vectors: reduce-scatter around a ring, then the root gathers the slices. The idea, with
// another reduce-scatter, is R. Rabenseifner's, "Optimization of collective reduction operations", ICCS 2004.
// Cost: 2 (p-1) alpha + 2 n (p-1)/p beta + n (p-1)/p gamma. The root reads one rank at a time.
#include "coll/algorithms.h"
#include "coll/ring.h"

namespace near::coll {

Result reduce_ring_gather(CollectiveGroup& group, const Call& call) {
  const int rank = group.rank(), size = group.size();
  Buffer vector = call.receive;
  if (rank != call.root) NEAR_TRY(group.scratch(call.send.count, *call.send.type, vector));
  NEAR_TRY(ring_reduce_scatter(group, *call.operation, call.send, vector));
  if (rank != call.root) return group.send(ring_slice(vector, rank, size), call.root);
  for (int step = 1; step < size; ++step) {
    const int from = (rank + step) % size;
    NEAR_TRY(group.receive(ring_slice(vector, from, size), from));
  }
  return {};
}

} // namespace near::coll
