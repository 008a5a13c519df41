// A plan drawn: one row a NUMA node, with its cores by cache and the ranks on them. One layout, two ways to
// show it.
#pragma once

#include "planning/plan.h"

#include <string>

namespace near::planning {

/// For a terminal: a line a node, "|" between caches, "." a free core, "-" one that may not be used.
std::string draw_text(const Machine& machine, const Slots& slots, const Plan& plan);

/// The same as a self-contained SVG image, with the plan's notes as its caption.
std::string draw_svg(const Machine& machine, const Slots& slots, const Plan& plan);

} // namespace near::planning
