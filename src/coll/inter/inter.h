// Collectives between two groups: one simple form each, in which rank 0 of a group leads it where a leader is
// needed. Source: MPI 5.0, section 6.2.
#pragma once

#include "coll/collective_group.h"

namespace near::coll {

class Schedule;

/// The collective groups of an intercommunicator: messages of `across` go to ranks of the other group, those
/// of `own` stay in the own group.
struct Groups {
  CollectiveGroup across;
  CollectiveGroup own;
};

Result inter_barrier(Groups& groups, const Call& call);
Result inter_broadcast(Groups& groups, const Call& call);
Result inter_reduce(Groups& groups, const Call& call);
Result inter_allreduce(Groups& groups, const Call& call);
Result inter_reduce_scatter(Groups& groups, const Call& call);
Result inter_gather(Groups& groups, const Call& call);
Result inter_gatherv(Groups& groups, const Call& call);
Result inter_scatter(Groups& groups, const Call& call);
Result inter_scatterv(Groups& groups, const Call& call);
Result inter_allgather(Groups& groups, const Call& call);
Result inter_allgatherv(Groups& groups, const Call& call);
Result inter_alltoall(Groups& groups, const Call& call);
Result inter_alltoallv(Groups& groups, const Call& call);

/// Executes the call on an intercommunicator, or records it into `schedule` unless that is null.
Result perform_between_groups(const Call& call, Communicator& communicator, Schedule* schedule);

} // namespace near::coll
