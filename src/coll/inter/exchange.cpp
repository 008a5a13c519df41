// Allgather and all-to-all between two groups: each rank exchanges with each of the other group, one after
// the other. With p ranks in the larger group, round i pairs a rank with the i-th after it and the i-th
// before it, modulo p; where the smaller group has no such rank, nothing moves. Cost: p (alpha + n beta), n
// being one block.
#include "coll/inter/inter.h"

#include <algorithm>

namespace near::coll {
namespace {

template <class SendBlock, class ReceiveBlock>
Result exchange_across(CollectiveGroup& across, SendBlock send_block, ReceiveBlock receive_block) {
  const int rank = across.rank(), peers = across.peers(), rounds = std::max(across.size(), peers);
  for (int round = 0; round < rounds; ++round) {
    const int to = (rank + round) % rounds, from = (rank - round + rounds) % rounds;
    const Buffer out = to < peers ? send_block(to) : Buffer{},
                 in = from < peers ? receive_block(from) : Buffer{};
    const bool sends = to < peers && out.bytes() != 0, receives = from < peers && in.bytes() != 0;
    if (sends && receives)
      NEAR_TRY(across.send_receive(out, to, in, from));
    else if (sends)
      NEAR_TRY(across.send(out, to));
    else if (receives)
      NEAR_TRY(across.receive(in, from));
  }
  return {};
}

} // namespace

Result inter_allgather(Groups& groups, const Call& call) {
  return exchange_across(
      groups.across, [&](int) { return call.send; }, [&](int rank) { return block(call.receive, rank); });
}
Result inter_allgatherv(Groups& groups, const Call& call) {
  return exchange_across(
      groups.across, [&](int) { return call.send; }, [&](int rank) { return call.receive_blocks.at(rank); });
}
Result inter_alltoall(Groups& groups, const Call& call) {
  return exchange_across(
      groups.across, [&](int rank) { return block(call.send, rank); },
      [&](int rank) { return block(call.receive, rank); });
}
Result inter_alltoallv(Groups& groups, const Call& call) {
  return exchange_across(
      groups.across, [&](int rank) { return call.send_blocks.at(rank); },
      [&](int rank) { return call.receive_blocks.at(rank); });
}

} // namespace near::coll
