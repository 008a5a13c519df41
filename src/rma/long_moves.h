// The stores of long puts and gets that the origin carries out itself.
//
// If those between two synchronisations fill half of the last-level cache, their sources fill the other half, and non-temporal
// stores save reading the lines that are overwritten. The footprint before the last synchronisation counts too: a program that
// moves as much each time uses non-temporal stores from the second time on. doc/adr/0057 has the figures.
// that moves as much each time goes past the cache from its second time on. doc/adr/0057 has the figures.
#pragma once

#include "copy/copy.h"
#include "copy/footprint.h"

#include <algorithm>
#include <cstdint>

namespace near::rma {

class LongMoves {
public:
  /// In bytes. Shorter moves are not counted.
  static constexpr std::uint64_t least = 64u << 10;

  /// `cache`: bytes of the last-level cache; 0: as on this machine.
  explicit LongMoves(std::uint64_t cache = 0) : cache_(cache) {}

  /// Chooses the stores for a move of at least `least` bytes to this address.
  copy::Store stores(const void* to, std::uint64_t bytes) {
    footprint_.add(to, bytes);
    const std::uint64_t cache = cache_ != 0 ? cache_ : copy::last_level_cache();
    return std::max(before_, footprint_.most()) >= cache / 2 ? copy::Store::streaming : copy::Store::cached;
  }
  /// Call at a flush or the end of an epoch.
  void synchronized() {
    if (footprint_.most() == 0) return; // a program may synchronise twice, as with two fences
    before_ = footprint_.most();
    footprint_.clear();
  }

private:
  std::uint64_t cache_;
  copy::Footprint footprint_;
  std::uint64_t before_ = 0; ///< the previous footprint
};

} // namespace near::rma
