// All-to-all, for equal blocks and for the v and w forms: in round i each rank sends to the one i after it
// and receives from the one i before it. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19 (2005). Cost: (p-1) alpha + n (p-1) beta, n being one block.
// In each round one rank reads each.
#include "coll/algorithms.h"

namespace near::coll {
namespace {

template <class SendBlock, class ReceiveBlock>
Result exchange(CollectiveGroup& group, SendBlock send_block, ReceiveBlock receive_block) {
  const int rank = group.rank(), size = group.size();
  NEAR_TRY(group.copy(send_block(rank), receive_block(rank)));
  for (int round = 1; round < size; ++round) {
    const int to = (rank + round) % size, from = (rank - round + size) % size;
    const Buffer out = send_block(to), in = receive_block(from);
    // No message is sent for an empty block; the other side knows that it is empty, because the signatures are equal.
    if (out.bytes() != 0 && in.bytes() != 0)
      NEAR_TRY(group.send_receive(out, to, in, from));
    else if (out.bytes() != 0)
      NEAR_TRY(group.send(out, to));
    else if (in.bytes() != 0)
      NEAR_TRY(group.receive(in, from));
  }
  return {};
}

} // namespace

Result alltoall_pairwise(CollectiveGroup& group, const Call& call) {
  return exchange(
      group, [&](int rank) { return block(call.send, rank); },
      [&](int rank) { return block(call.receive, rank); });
}

Result alltoallv_pairwise(CollectiveGroup& group, const Call& call) {
  return exchange(
      group, [&](int rank) { return call.send_blocks.at(rank); },
      [&](int rank) { return call.receive_blocks.at(rank); });
}

} // namespace near::coll
