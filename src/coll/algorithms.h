// Every algorithm: one file each, in the folder of its collective. Where each may be used stands in
// registry.cpp.
#pragma once

#include "coll/partial.h"
#include "coll/team.h"
#include "coll/tree.h"

namespace near::coll {

Result barrier_dissemination(Team& team, const Call& call);
Result barrier_linear(Team& team, const Call& call);

Result broadcast_binomial(Team& team, const Call& call);
Result broadcast_scatter_allgather(Team& team, const Call& call);

Result reduce_binomial(Team& team, const Call& call);
Result reduce_ring_gather(Team& team, const Call& call);

Result allreduce_recursive_doubling(Team& team, const Call& call);
Result allreduce_linear(Team& team, const Call& call);
Result allreduce_ring(Team& team, const Call& call);

Result gather_binomial(Team& team, const Call& call);
Result gather_linear(Team& team, const Call& call);
Result gatherv_linear(Team& team, const Call& call);

Result scatter_binomial(Team& team, const Call& call);
Result scatter_linear(Team& team, const Call& call);
Result scatterv_linear(Team& team, const Call& call);

Result allgather_recursive_doubling(Team& team, const Call& call);
Result allgather_bruck(Team& team, const Call& call);
Result allgather_ring(Team& team, const Call& call);
Result allgatherv_ring(Team& team, const Call& call);

Result alltoall_swap(Team& team, const Call& call);
Result alltoall_bruck(Team& team, const Call& call);
Result alltoall_pairwise(Team& team, const Call& call);
Result alltoallv_swap(Team& team, const Call& call);
Result alltoallv_pairwise(Team& team, const Call& call);

Result reduce_scatter_pairwise(Team& team, const Call& call);
Result reduce_scatter_via_root(Team& team, const Call& call);

Result scan_recursive_doubling(Team& team, const Call& call);
Result exscan_recursive_doubling(Team& team, const Call& call);

/// The scan itself, among the ranks from `first` on: each one's partial result grows to cover all of them up
/// to itself.
Result scan_among(Team& team, Partial& partial, int first);

} // namespace near::coll
