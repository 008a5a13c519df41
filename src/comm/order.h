// The order of the processes in a topology's communicator: reorder.h applied to the processes of a communicator.
#pragma once

#include "comm/comm.h"
#include "comm/reorder.h"

namespace near::comm {

/// Whether another order of the first `count` processes could bring neighbours nearer to each other. False if all of them run on
/// the same node of one machine, as far as the launcher has told. All processes find the same; local.
bool may_reorder(const Communicator& parent, int count);

/// The rank of this process among the first processes of `parent`, as many as the pattern has ranks; MPI_UNDEFINED if it is not
/// one of them. Local.
int own_rank_in(const Communicator& parent, const Pattern& pattern);

/// Sets order[i] to the process (by its rank in `parent`) to which own_rank_in() gives rank i. Collective; exchanges messages
/// if there are several machines: then it fails with MPI_ERR_TOPOLOGY if the processes have given different patterns.
Result agree_on_order(Communicator& parent, const Pattern& pattern, std::vector<int>& order);

} // namespace near::comm
