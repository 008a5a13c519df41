// Allgather for short blocks and any number of ranks. J. Bruck, C. Ho, S. Kipnis, E. Upfal, D. Weathersby,
// "Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS 8
// (1997). Cost: ceil(log2 p) alpha + n (p-1) beta, n being one block, and one more copy of the result.
#include "coll/algorithms.h"

#include <algorithm>

namespace near::coll {

Result allgather_bruck(CollectiveGroup& group, const Call& call) {
  const int rank = group.rank(), size = group.size();
  const MPI_Count bytes = call.receive.bytes();
  Buffer packed; // block i is rank (rank + i) % size's
  NEAR_TRY(group.scratch_bytes(bytes * size, packed));
  auto blocks = [&](int first, int count) { return byte_range(packed, bytes * first, bytes * count); };

  NEAR_TRY(group.copy(call.send, blocks(0, 1)));
  for (int have = 1; have < size; have *= 2) {
    const int more = std::min(have, size - have);
    NEAR_TRY(group.send_receive(blocks(0, more), (rank - have + size) % size, blocks(have, more),
                                (rank + have) % size));
  }

  NEAR_TRY(group.copy(call.send, block(call.receive, rank)));
  const int after = size - rank - 1;
  NEAR_TRY(group.copy(blocks(1, after), block(call.receive, rank + 1, after)));
  return group.copy(blocks(1 + after, rank), block(call.receive, 0, rank));
}

} // namespace near::coll
