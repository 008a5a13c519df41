// Allgather around a ring, for equal and for varying blocks. R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005). Cost: (p-1) alpha + n
// (p-1) beta, n being one block. Each rank is read by one other.
#include "coll/algorithms.h"

namespace near::coll {
namespace {

template <class BlockOf>
Result pass_around(CollectiveGroup& group, const Call& call, BlockOf block_of) {
  const int rank = group.rank(), size = group.size();
  const int left = (rank - 1 + size) % size, right = (rank + 1) % size;
  NEAR_TRY(group.copy(call.send, block_of(rank)));
  for (int round = 0; round < size - 1; ++round)
    NEAR_TRY(group.send_receive(block_of((rank - round + size) % size), right,
                                block_of((rank - round - 1 + size) % size), left));
  return {};
}

} // namespace

Result allgather_ring(CollectiveGroup& group, const Call& call) {
  return pass_around(group, call, [&](int rank) { return block(call.receive, rank); });
}

Result allgatherv_ring(CollectiveGroup& group, const Call& call) {
  return pass_around(group, call, [&](int rank) { return call.receive_blocks.at(rank); });
}

} // namespace near::coll
