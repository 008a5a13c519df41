// Draws the predictions of `near model --coll`.
#pragma once

#include "abi/types.h"

#include <string>
#include <vector>

namespace near::model {

/// One collective on one number of machines.
struct Curve {
  std::string name; ///< "64 machines"
  struct Point {
    MPI_Count bytes;
    double near, far; ///< nanoseconds: with leaders near the NIC, and with the lowest ranks as leaders
  };
  std::vector<Point> points;
};
struct Panel {
  std::string title;
  std::vector<Curve> curves;
};

/// An SVG document with a panel for each collective: bytes to the right, time upwards, both logarithmic.
std::string drawing_of(const std::vector<Panel>& panels);

} // namespace near::model
