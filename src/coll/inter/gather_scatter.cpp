// Gather and scatter between a root in one group and all of the other: directly.
// Cost at the root: p (alpha + n beta), n being one block, p the other group.
#include "coll/inter/inter.h"

namespace near::coll {
namespace {

// As in gather/linear.cpp and scatter/linear.cpp.
constexpr std::size_t receive_window = 8, send_window = 4;

template <class BlockOf>
Result collect_across(CollectiveGroup& across, const Call& call, BlockOf block_of) {
  if (call.root == MPI_PROC_NULL) return {};
  if (call.root != MPI_ROOT) return call.send.bytes() != 0 ? across.send(call.send, call.root) : Result{};
  for (int from = 0; from < across.peers(); ++from) {
    const Buffer into = block_of(from);
    if (into.bytes() == 0) continue;
    NEAR_TRY(across.start_receive(into, from));
    NEAR_TRY(across.finish_until(receive_window - 1));
  }
  return across.finish_all();
}

template <class BlockOf>
Result hand_out_across(CollectiveGroup& across, const Call& call, BlockOf block_of) {
  if (call.root == MPI_PROC_NULL) return {};
  if (call.root != MPI_ROOT)
    return call.receive.bytes() != 0 ? across.receive(call.receive, call.root) : Result{};
  for (int to = 0; to < across.peers(); ++to) {
    const Buffer from = block_of(to);
    if (from.bytes() == 0) continue;
    NEAR_TRY(across.start_send(from, to));
    NEAR_TRY(across.finish_until(send_window - 1));
  }
  return across.finish_all();
}

} // namespace

Result inter_gather(Groups& groups, const Call& call) {
  return collect_across(groups.across, call, [&](int rank) { return block(call.receive, rank); });
}
Result inter_gatherv(Groups& groups, const Call& call) {
  return collect_across(groups.across, call, [&](int rank) { return call.receive_blocks.at(rank); });
}
Result inter_scatter(Groups& groups, const Call& call) {
  return hand_out_across(groups.across, call, [&](int rank) { return block(call.send, rank); });
}
Result inter_scatterv(Groups& groups, const Call& call) {
  return hand_out_across(groups.across, call, [&](int rank) { return call.send_blocks.at(rank); });
}

} // namespace near::coll
