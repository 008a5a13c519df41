// Every algorithm has a file in the folder of its collective. choice/algorithms.def says where each may be
// used.
#pragma once

#include "coll/collective_group.h"
#include "coll/partial.h"
#include "pattern/tree.h"

namespace near::coll {

using pattern::BinomialTree;

/// All ranks, which have an area, tell each other what they call (shared/meeting.cpp). Fails with MPI_ERR_OTHER if it is
/// not the same.
Result meet(CollectiveGroup& group, const Call& call);
/// An algorithm of messages in a group that has an area.
template <Result (*algorithm)(CollectiveGroup&, const Call&)>
Result after_meeting(CollectiveGroup& group, const Call& call) {
  NEAR_TRY(meet(group, call));
  return algorithm(group, call);
}
/// An algorithm of messages, which every rank sends at once, in a group that has an area: a call that is recorded starts them,
/// and meets the others while it waits for theirs.
Result meet_meanwhile(Result (*algorithm)(CollectiveGroup&, const Call&), CollectiveGroup& group,
                      const Call& call);
template <Result (*algorithm)(CollectiveGroup&, const Call&)>
Result while_meeting(CollectiveGroup& group, const Call& call) {
  return meet_meanwhile(algorithm, group, call);
}

/// As scatter_linear(), for any number of ranks that have an area (shared/meeting.cpp).
Result scatter_messages(CollectiveGroup& group, const Call& call);
// Of two ranks that have an area (shared/meeting.cpp).
Result broadcast_pair(CollectiveGroup& group, const Call& call);
Result gather_pair(CollectiveGroup& group, const Call& call);
Result scatter_pair(CollectiveGroup& group, const Call& call);
Result reduce_pair(CollectiveGroup& group, const Call& call);
Result scan_pair(CollectiveGroup& group, const Call& call);
Result exscan_pair(CollectiveGroup& group, const Call& call);

Result barrier_by_machine(CollectiveGroup& group, const Call& call);
Result barrier_dissemination(CollectiveGroup& group, const Call& call);
Result barrier_linear(CollectiveGroup& group, const Call& call);
Result barrier_shared(CollectiveGroup& group, const Call& call);
Result barrier_shared_grid(CollectiveGroup& group, const Call& call);

Result broadcast_by_machine(CollectiveGroup& group, const Call& call);
Result broadcast_binomial(CollectiveGroup& group, const Call& call);
Result broadcast_scatter_allgather(CollectiveGroup& group, const Call& call);
Result broadcast_shared(CollectiveGroup& group, const Call& call);
Result broadcast_shared_by_node(CollectiveGroup& group, const Call& call);

Result reduce_by_machine(CollectiveGroup& group, const Call& call);
Result reduce_binomial(CollectiveGroup& group, const Call& call);
Result reduce_ring_gather(CollectiveGroup& group, const Call& call);
Result reduce_shared_flat(CollectiveGroup& group, const Call& call);
Result reduce_shared_grid(CollectiveGroup& group, const Call& call);
Result reduce_shared_shares(CollectiveGroup& group, const Call& call);

Result allreduce_by_machine(CollectiveGroup& group, const Call& call);
Result allreduce_recursive_doubling(CollectiveGroup& group, const Call& call);
Result allreduce_linear(CollectiveGroup& group, const Call& call);
Result allreduce_ring(CollectiveGroup& group, const Call& call);
Result allreduce_shared_flat(CollectiveGroup& group, const Call& call);
Result allreduce_shared_grid(CollectiveGroup& group, const Call& call);
Result allreduce_shared_root(CollectiveGroup& group, const Call& call);
Result allreduce_shared_shares(CollectiveGroup& group, const Call& call);

Result gather_by_machine(CollectiveGroup& group, const Call& call);
Result gather_binomial(CollectiveGroup& group, const Call& call);
Result gather_linear(CollectiveGroup& group, const Call& call);
Result gatherv_linear(CollectiveGroup& group, const Call& call);
Result gather_shared(CollectiveGroup& group, const Call& call);
Result gatherv_shared(CollectiveGroup& group, const Call& call);

Result scatter_binomial(CollectiveGroup& group, const Call& call);
Result scatter_linear(CollectiveGroup& group, const Call& call);
Result scatterv_linear(CollectiveGroup& group, const Call& call);
Result scatter_shared(CollectiveGroup& group, const Call& call);
Result scatter_single_copy(CollectiveGroup& group, const Call& call);
Result scatterv_shared(CollectiveGroup& group, const Call& call);

Result allgather_by_machine(CollectiveGroup& group, const Call& call);
Result allgather_recursive_doubling(CollectiveGroup& group, const Call& call);
Result allgather_bruck(CollectiveGroup& group, const Call& call);
Result allgather_ring(CollectiveGroup& group, const Call& call);
Result allgatherv_ring(CollectiveGroup& group, const Call& call);
Result allgather_shared(CollectiveGroup& group, const Call& call);
Result allgatherv_shared(CollectiveGroup& group, const Call& call);

Result alltoall_by_machine(CollectiveGroup& group, const Call& call);
Result alltoall_swap(CollectiveGroup& group, const Call& call);
Result alltoall_bruck(CollectiveGroup& group, const Call& call);
Result alltoall_pairwise(CollectiveGroup& group, const Call& call);
Result alltoallv_swap(CollectiveGroup& group, const Call& call);
Result alltoallv_pairwise(CollectiveGroup& group, const Call& call);
Result alltoall_shared(CollectiveGroup& group, const Call& call);
Result alltoall_single_copy(CollectiveGroup& group, const Call& call);
Result alltoallv_shared(CollectiveGroup& group, const Call& call);

Result reduce_scatter_pairwise(CollectiveGroup& group, const Call& call);
Result reduce_scatter_via_root(CollectiveGroup& group, const Call& call);
Result reduce_scatter_shared(CollectiveGroup& group, const Call& call);

Result scan_recursive_doubling(CollectiveGroup& group, const Call& call);
Result exscan_recursive_doubling(CollectiveGroup& group, const Call& call);
Result scan_shared(CollectiveGroup& group, const Call& call);
Result exscan_shared(CollectiveGroup& group, const Call& call);

Result neighbor_allgather_linear(CollectiveGroup& group, const Call& call);
Result neighbor_allgatherv_linear(CollectiveGroup& group, const Call& call);
Result neighbor_alltoall_linear(CollectiveGroup& group, const Call& call);
Result neighbor_alltoallv_linear(CollectiveGroup& group, const Call& call);

/// The scan itself, among the ranks from `first` on: each one's partial result grows to cover all of them up
/// to itself.
Result scan_among(CollectiveGroup& group, Partial& partial, int first);

} // namespace near::coll
