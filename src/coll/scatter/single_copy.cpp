// Scatter in which every rank reads its block of the root's buffer, in one copy, all at the same time. Cost: n beta and a system
// call at each rank; the root waits until all have read.
#include "coll/shared/single_copy.h"

namespace near::coll {

Result scatter_single_copy(CollectiveGroup& group, const Call& call) {
  SingleCopies copies(group, call);
  const int rank = copies.rank(), size = copies.size();
  if (rank != call.root) {
    NEAR_TRY(copies.expose_nothing());
    NEAR_TRY(copies.read(call.root, rank, call.receive));
    copies.end_reading();
    return copies.finish();
  }
  NEAR_TRY(copies.expose(block(call.send, 0, size), call.send.bytes()));
  NEAR_TRY(group.copy(block(call.send, rank), call.receive));
  for (int step = 1; step < size; ++step) NEAR_TRY(copies.wait_for((rank + step) % size));
  return copies.finish();
}

} // namespace near::coll
