// What a rank is bound to, given the units that are its own.
#pragma once

#include "planning/units.h"

namespace near::planning {

/// The place of a rank whose own units are `chunk`. `all` are the units that all ranks may use.
Place bound_place(const Machine& machine, const Chunk& chunk, const Units& all, const Request& request);

} // namespace near::planning
