// All-to-all in place: in each round the ranks form disjoint pairs (a rank may rest), and each pair swaps its
// blocks through a buffer for one. The pairing rank + partner = round (mod p) is the classic tournament plan.
// Cost: p alpha + n (p-1) beta, n being one block, and one more copy of each block.
#include "coll/algorithms.h"

#include <algorithm>

namespace near::coll {
namespace {

template <class BlockOf>
Result swap_all(CollectiveGroup& group, BlockOf block_of) {
  const int rank = group.rank(), size = group.size();
  MPI_Count largest = 0;
  for (int other = 0; other < size; ++other)
    if (other != rank) largest = std::max(largest, block_of(other).bytes());
  Buffer spare;
  NEAR_TRY(group.scratch_bytes(largest, spare));
  for (int round = 0; round < size; ++round) {
    const int partner = (round - rank + size) % size;
    if (partner == rank) continue;
    const Buffer here = block_of(partner);
    if (here.bytes() == 0) continue; // in place, both of a pair have the same signature
    const Buffer leaving = byte_range(spare, 0, here.bytes());
    NEAR_TRY(group.copy(here, leaving));
    NEAR_TRY(group.send_receive(leaving, partner, here, partner));
  }
  return {};
}

} // namespace

Result alltoall_swap(CollectiveGroup& group, const Call& call) {
  return swap_all(group, [&](int rank) { return block(call.receive, rank); });
}

Result alltoallv_swap(CollectiveGroup& group, const Call& call) {
  return swap_all(group, [&](int rank) { return call.receive_blocks.at(rank); });
}

} // namespace near::coll
