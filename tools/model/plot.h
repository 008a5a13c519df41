// Draws the predictions of `near model --check` against the measurements.
#pragma once

#include "model/check.h"

#include <span>
#include <string>

namespace near::model {

/// An SVG document: one point for each comparison, measured time to the right, predicted time upwards, both logarithmic. The points
/// of a perfect model lie on the diagonal.
std::string plot_of(std::span<const Point> points);

} // namespace near::model
