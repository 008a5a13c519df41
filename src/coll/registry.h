// The registry: joins the algorithms to the rows that the layer `choice` chooses among.
#pragma once

#include "choice/choice.h"
#include "coll/collective_group.h"

namespace near::coll {

using choice::Algorithm, choice::algorithms, choice::choose, choice::configure, choice::Facts,
    choice::has_root, choice::name_of, choice::published_bytes, choice::ranks_share_processors,
    choice::uses_area;

class Area;

/// The facts of a call in a group of `size` ranks, as blocking and without an area.
Facts facts_of(const Call& call, int size);
/// Adds those of the area that the call may use. A blocking call may expect that its ranks can read each other's memory until
/// they have agreed on that: run() asks them if it matters.
void add_area(Facts& facts, const Area& area);
/// What executes or records a call: an algorithm of the table.
using Function = Result (*)(CollectiveGroup& group, const Call& call);
/// Data of up to this many bytes, from all ranks' parts together, may be published in one chunk without choosing the stores.
inline constexpr MPI_Count short_bytes = 4 << 10;
/// The algorithm that is chosen, if it uses the area and publishes and reads one chunk of at most short_bytes at each rank; else null.
Function find_short(const Facts& facts);
/// Whether the algorithm that is chosen publishes parts of different sizes (shared/parts.h).
bool publishes_parts(const Facts& facts);
/// Runs the call by the algorithm that is chosen for the group, which is not one of an intercommunicator.
Result run(CollectiveGroup& group, const Call& call);

} // namespace near::coll
