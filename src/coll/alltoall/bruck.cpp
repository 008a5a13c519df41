// All-to-all for short blocks: log p rounds instead of p - 1. J. Bruck, C. Ho, S. Kipnis, E. Upfal, D.
// Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE
// TPDS 8 (1997). Cost: ceil(log2 p) alpha + n p/2 ceil(log2 p) beta, n being one block, and two more copies
// of all blocks.
#include "coll/algorithms.h"

namespace near::coll {

Result alltoall_bruck(CollectiveGroup& group, const Call& call) {
  const int rank = group.rank(), size = group.size();
  const MPI_Count bytes = call.receive.bytes();
  Buffer travelling, leaving, arriving;
  NEAR_TRY(group.scratch_bytes(bytes * size, travelling));
  NEAR_TRY(group.scratch_bytes(bytes * ((size + 1) / 2), leaving));
  NEAR_TRY(group.scratch_bytes(bytes * ((size + 1) / 2), arriving));
  auto blocks = [&](const Buffer& of, int first, int count) {
    return byte_range(of, bytes * first, bytes * count);
  };

  // Block i of `travelling` has i ranks to go.
  NEAR_TRY(group.copy(block(call.send, rank, size - rank), blocks(travelling, 0, size - rank)));
  NEAR_TRY(group.copy(block(call.send, 0, rank), blocks(travelling, size - rank, rank)));

  for (int distance = 1; distance < size; distance *= 2) {
    int moving = 0;
    for (int i = 0; i < size; ++i)
      if ((i & distance) != 0) NEAR_TRY(group.copy(blocks(travelling, i, 1), blocks(leaving, moving++, 1)));
    NEAR_TRY(group.send_receive(blocks(leaving, 0, moving), (rank + distance) % size,
                                blocks(arriving, 0, moving), (rank - distance + size) % size));
    moving = 0;
    for (int i = 0; i < size; ++i)
      if ((i & distance) != 0) NEAR_TRY(group.copy(blocks(arriving, moving++, 1), blocks(travelling, i, 1)));
  }

  for (int i = 0; i < size; ++i)
    NEAR_TRY(group.copy(blocks(travelling, i, 1), block(call.receive, (rank - i + size) % size)));
  return {};
}

} // namespace near::coll
