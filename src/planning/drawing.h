// Drawings of a plan: a row for each NUMA node, with its cores grouped by cache and the ranks on them. There
// is one layout and there are two output formats.
#pragma once

#include "planning/plan.h"

#include <string>

namespace near::planning {

/// As text for a terminal: a line for each node, "|" between caches, "." for a free core, "-" for a core
/// that may not be used.
std::string draw_text(const Machine& machine, const Slots& slots, const Plan& plan);

/// As a self-contained SVG image, with the plan's notes as caption.
std::string draw_svg(const Machine& machine, const Slots& slots, const Plan& plan);

} // namespace near::planning
