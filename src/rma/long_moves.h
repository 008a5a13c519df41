// The stores of long puts and gets that the origin carries out by itself.
//
// If those between two synchronisations fill half of the last-level cache, their sources fill the other half, and stores past the
// cache save the reading of lines that are overwritten. What was moved the last time, before a synchronisation, counts too: a program
// that moves as much each time goes past the cache from its second time on. doc/adr/0057 has the figures.
#pragma once

#include "copy/copy.h"
#include "copy/footprint.h"

#include <algorithm>
#include <cstdint>

namespace near::rma {

class LongMoves {
public:
  /// Bytes. Shorter ones are not counted.
  static constexpr std::uint64_t least = 64u << 10;

  /// `cache`: bytes of the last-level cache; 0: those of this machine's.
  explicit LongMoves(std::uint64_t cache = 0) : cache_(cache) {}

  /// For a move of at least `least` bytes to this address.
  copy::Store stores(const void* to, std::uint64_t bytes) {
    footprint_.add(to, bytes);
    const std::uint64_t cache = cache_ != 0 ? cache_ : copy::last_level_cache();
    return std::max(before_, footprint_.most()) >= cache / 2 ? copy::Store::streaming : copy::Store::cached;
  }
  /// A flush, or an epoch ends.
  void synchronized() {
    if (footprint_.most() == 0) return; // a program may synchronise twice, as between two fences
    before_ = footprint_.most();
    footprint_.clear();
  }

private:
  std::uint64_t cache_;
  copy::Footprint footprint_;
  std::uint64_t before_ = 0; ///< the footprint of the last time
};

} // namespace near::rma
