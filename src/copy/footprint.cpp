// See footprint.h.
#include "copy/footprint.h"

#include "os/memory.h"

namespace near::copy {

std::uint64_t last_level_cache() {
  constexpr std::uint64_t usual = 32u << 20;
  static const std::uint64_t largest = os::largest_cache();
  return largest != 0 ? largest : usual;
}

} // namespace near::copy
