// Allgather around a ring, for equal and for varying blocks. R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005). Cost: (p-1) alpha + n
// (p-1) beta, n being one block. Each rank is read by one other.
#include "pattern/ring.h"
#include "coll/algorithms.h"

namespace near::coll {
namespace {

template <class BlockOf>
Result pass_around(CollectiveGroup& group, const Call& call, BlockOf block_of) {
  const pattern::Ring ring(group.rank(), group.size());
  NEAR_TRY(group.copy(call.send, block_of(group.rank())));
  for (int round = 0; round < ring.rounds(); ++round) {
    const auto [leaves, arrives] = ring.gathering(round);
    NEAR_TRY(group.send_receive(block_of(leaves), ring.right(), block_of(arrives), ring.left()));
  }
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
