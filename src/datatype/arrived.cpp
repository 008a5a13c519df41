// Unpacks bytes that another process has just written, whose lines are in the cache of another processor.
#include "datatype/arrived.h"

#include "datatype/datatype.h"
#include "os/clock.h"

#include <algorithm>

namespace near::datatype {
namespace {

LineDistance distance;

/// Whether lines come from far. Measures it with the line at `at` if it is time.
bool are_far(const std::byte* at) {
  if (distance.is_due()) {
    const std::uint64_t began = os::monotonic_ns(), again = os::monotonic_ns();
    load_lines(at, 1);
    const std::uint64_t ended = os::monotonic_ns();
    distance.note(static_cast<std::int64_t>(ended - again) - static_cast<std::int64_t>(again - began));
  }
  return distance.is_far();
}

} // namespace

// A loop over elements has only some ten lines under way, until the processor notices that it reads one after the other. Fetches that
// nothing waits for help as long as the processor has room for them, up to 2 KiB. If more has arrived, a byte of each line is loaded
// first, which has as many lines under way as the processor allows. This pays where lines come from far, and not for the later
// parts of a long message, whose lines are on their way while the parts before them are unpacked (doc/adr/0030).
void unpack_arrived(const Buffer& buffer, MPI_Count offset, const void* in, MPI_Count bytes) {
  constexpr MPI_Count fetched_ahead = 2048, few_parts = 65536;
  if (!buffer.type->contiguous) {
    const auto* from = static_cast<const std::byte*>(in);
    const bool is_early = offset == 0 || buffer.bytes() <= few_parts;
    if (bytes > fetched_ahead && is_early && are_far(from + bytes / 2))
      load_lines(from, static_cast<std::size_t>(bytes));
    else
      base::fetch_for_reading(from, static_cast<std::size_t>(std::min(bytes, fetched_ahead)));
  }
  unpack(buffer, offset, in, bytes);
}

} // namespace near::datatype
