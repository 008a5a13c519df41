// Determines what a rank is bound to, given its own units.
#pragma once

#include "planning/units.h"

namespace near::planning {

/// The binding of a rank whose own units are `chunk`. `all` are the units that the job may use.
Binding binding_of(const Machine& machine, const Chunk& chunk, const Units& all, const Request& request);

} // namespace near::planning
