// Finds which of several ranks is nearest to a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace near::topo {

/// The position of the rank that leads its machine in collectives between machines: the lowest of the nearest ranks. `distances`
/// are those of the ranks to their NIC; 0 if unknown, which counts as farther than any known distance.
inline int nearest(std::span<const std::uint32_t> distances) {
  auto is_nearer = [](std::uint32_t one, std::uint32_t other) {
    return one != 0 && (other == 0 || one < other);
  };
  return static_cast<int>(std::min_element(distances.begin(), distances.end(), is_nearer) -
                          distances.begin());
}

} // namespace near::topo
