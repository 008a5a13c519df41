// Which rank leads each machine: the one that is nearest to the NIC, so that what enters or leaves the machine passes as few NUMA nodes
// as possible.
#pragma once

#include "coll/machines.h"
#include "coll/shared/area.h"

namespace near::coll {

/// Elects the leaders of a communicator's machines. A collective call, of all ranks alike: each machine elects its leader by what its
/// ranks have published, the lowest ranks exchange whom they have elected, and pass it on. If it fails, nothing has changed.
/// Calls that are being executed keep the leaders with which they began.
Result elect_leaders(Communicator& communicator, AreaExtension& extension);

/// The position of the rank that is to lead: `distances` are those to the NIC, 0 if unknown. The lowest of the nearest ones.
int nearest(std::span<const std::uint32_t> distances);

} // namespace near::coll
