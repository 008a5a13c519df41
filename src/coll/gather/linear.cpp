// Gather, and gather of varying blocks: everybody sends to the root.
// Cost at the root: (p-1) alpha + n (p-1) beta, n being one block; no block travels twice.
#include "coll/algorithms.h"

namespace near::coll {
namespace {

/// Receives under way at the root: enough that it never waits for one slow rank, few enough that memory for
/// them does not grow with the group.
constexpr std::size_t most_receives = 8;

template <class BlockOf>
Result collect(CollectiveGroup& group, const Call& call, BlockOf block_of) {
  const int rank = group.rank(), size = group.size();
  if (rank != call.root) return call.send.bytes() != 0 ? group.send(call.send, call.root) : Result{};
  NEAR_TRY(group.copy(call.send, block_of(rank)));
  for (int step = 1; step < size; ++step) {
    const int from = (rank + step) % size;
    const Buffer into = block_of(from);
    if (into.bytes() == 0) continue; // the sender knows that too: the signatures are equal
    NEAR_TRY(group.start_receive(into, from));
    NEAR_TRY(group.finish_until(most_receives - 1));
  }
  return group.finish_all();
}

} // namespace

Result gather_linear(CollectiveGroup& group, const Call& call) {
  return collect(group, call, [&](int rank) { return block(call.receive, rank); });
}

Result gatherv_linear(CollectiveGroup& group, const Call& call) {
  return collect(group, call, [&](int rank) { return call.receive_blocks.at(rank); });
}

} // namespace near::coll
