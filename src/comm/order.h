// The order of the processes in a topology's communicator: reorder.h applied to the processes of a communicator.
#pragma once

#include "comm/comm.h"
#include "comm/reorder.h"

namespace near::comm {

/// Whether another order of the first `count` processes could bring neighbours nearer to each other. Returns false if the
/// launcher has reported the same node of one machine for all of them. The result is the same in all processes. Local.
bool may_reorder(const Communicator& parent, int count);

/// The rank of this process among the first processes of `parent`, of which there are as many as the pattern has ranks;
/// MPI_UNDEFINED if it is not one of them. Local.
int own_rank_in(const Communicator& parent, const Pattern& pattern);

/// Sets order[i] to the process (by its rank in `parent`) to which own_rank_in() gives rank i. Collective. On several
/// machines it exchanges messages, and fails with MPI_ERR_TOPOLOGY if the processes have passed different patterns.
Result agree_on_order(Communicator& parent, const Pattern& pattern, std::vector<int>& order);

} // namespace near::comm
