// A job's segment that somebody has overwritten, read by `near` and mpiexec. The input is a list of words:
// two bytes for the position (in units of four bytes), four bytes for the contents.
#include "crafted.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using near::segment::Crafted;
  static Crafted crafted;
  if (!crafted.made()) std::abort();
  for (; size >= 6; data += 6, size -= 6) {
    std::size_t where = static_cast<std::size_t>(data[0] | data[1] << 8) * 4 % Crafted::area;
    crafted.overwrite(where, data + 2, 4);
  }
  if (near::segment::has_commands(crafted.read())) std::abort();
  crafted.repair();
  return 0;
}
