// `near info --coll --machines --leaders`: who leads each machine, and what the leaders do in a broadcast or allreduce.
#pragma once

#include "choice/choice.h"
#include "model/job.h"
#include "tools/commands.h"

#include <vector>

namespace near::tools {

/// Prints this for those collectives among `wanted` that have an order to show. The root is one of the ranks.
void print_leaders(const CollectivesOptions& options, const model::Job& job,
                   const std::vector<choice::Collective>& wanted);

} // namespace near::tools
