// Unpacks bytes that another process has just written, whose lines are in the cache of another processor.
#include "datatype/arrived.h"

#include "datatype/datatype.h"
#include "os/clock.h"

#include <algorithm>

namespace near::datatype {
namespace {

LineDistance distance;

/// Whether lines come from far away. Measures it with the line at `at` if a measurement is due.
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

// A loop over elements has only about ten lines under way until the processor detects the sequential reads. Prefetches that nothing
// waits for help while the processor has room for them, up to 2 KiB. If more has arrived, a byte of each line is loaded first, so
// that as many lines are under way as the processor allows. This pays if lines come from far away. It does not pay for the later
// parts of a long message, whose lines are under way while the earlier parts are unpacked (doc/adr/0030).
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
