// Scatter, and scatter of varying blocks: the root sends to everybody.
// Cost at the root: (p-1) alpha + n (p-1) beta, n being one block; no block travels twice.
#include "coll/algorithms.h"

namespace near::coll {
namespace {

/// The number of sends under way at the root. If the kernel copies, all receivers read the root's memory at the same
/// time and contend for its page tables: a few are faster than many.
constexpr std::size_t most_sends = 4;

template <class BlockOf>
Result hand_out(CollectiveGroup& group, const Call& call, BlockOf block_of) {
  const int rank = group.rank(), size = group.size();
  if (rank != call.root) return call.receive.bytes() != 0 ? group.receive(call.receive, call.root) : Result{};
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size;
    const Buffer from = block_of(to);
    if (from.bytes() == 0) continue; // the receiver knows that too: the signatures are equal
    NEAR_TRY(group.start_send(from, to));
    NEAR_TRY(group.finish_until(most_sends - 1));
  }
  NEAR_TRY(group.copy(block_of(rank), call.receive));
  return group.finish_all();
}

} // namespace

Result scatter_linear(CollectiveGroup& group, const Call& call) {
  return hand_out(group, call, [&](int rank) { return block(call.send, rank); });
}

Result scatterv_linear(CollectiveGroup& group, const Call& call) {
  return hand_out(group, call, [&](int rank) { return call.send_blocks.at(rank); });
}

} // namespace near::coll
