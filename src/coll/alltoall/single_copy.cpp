// All-to-all in which every rank reads its block of every other one's buffer, in one copy, beginning with its neighbour's.
// Cost: p n beta, a system call for each block, and two waits.
#include "coll/shared/single_copy.h"

namespace near::coll {

Result alltoall_single_copy(CollectiveGroup& group, const Call& call) {
  SingleCopies copies(group, call);
  const int rank = copies.rank(), size = copies.size();
  NEAR_TRY(copies.expose(block(call.send, 0, size), call.send.bytes()));
  NEAR_TRY(group.copy(block(call.send, rank), block(call.receive, rank)));
  for (int step = 1; step < size; ++step) {
    const int from = (rank + step) % size;
    NEAR_TRY(copies.read(from, rank, block(call.receive, from)));
  }
  return copies.finish_together();
}

} // namespace near::coll
