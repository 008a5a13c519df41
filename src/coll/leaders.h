// Which rank leads each machine: the one that is nearest to the NIC, so that what enters or leaves the machine passes as few NUMA nodes
// as possible.
#pragma once

#include "coll/shared/area.h"

namespace near::coll {

/// Elects the leaders of a communicator's machines. A collective call, of all ranks alike: each machine elects its leader by what its
/// ranks have published, the lowest ranks exchange whom they have elected, and pass it on. If it fails, nothing has changed.
/// Calls that are being executed keep the leaders with which they began.
Result elect_leaders(Communicator& communicator, AreaExtension& extension);

} // namespace near::coll
