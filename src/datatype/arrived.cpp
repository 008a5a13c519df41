// Unpacks bytes that another process has just written, whose lines are in the cache of another processor.
#include "datatype/arrived.h"

#include "datatype/datatype.h"
#include "os/clock.h"

#include <algorithm>

namespace near::datatype {
namespace {

Distance distance;

/// A load that the compiler does not leave out.
void load_line(const std::byte* at) {
  static_cast<void>(*static_cast<const volatile unsigned char*>(static_cast<const void*>(at)));
}

/// Whether lines come from far. Measures it with the line at `at` if it is time.
bool are_far(const std::byte* at) {
  if (distance.is_due()) {
    const std::uint64_t began = os::monotonic_ns();
    load_line(at);
    distance.note(os::monotonic_ns() - began);
  }
  return distance.is_far();
}

} // namespace

// A loop over elements has only some ten lines under way, until the processor notices that it reads one after the other. Fetches that
// nothing waits for help as long as the processor has room for them, up to 2 KiB. Of more, a word of each line is loaded first, which
// has as many lines under way as the processor allows. That pays where lines come from far, and not in messages that come in many
// parts, since the lines of the next part are on their way meanwhile (doc/adr/0030).
void unpack_arrived(const Buffer& buffer, MPI_Count offset, const void* in, MPI_Count bytes) {
  constexpr MPI_Count fetched_ahead = 2048, few_parts = 65536;
  if (!buffer.type->contiguous) {
    const auto* from = static_cast<const std::byte*>(in);
    if (bytes > fetched_ahead && buffer.bytes() <= few_parts && are_far(from + bytes / 2))
      for (MPI_Count at = 0; at < bytes; at += base::cache_line) load_line(from + at);
    else
      base::fetch_for_reading(from, static_cast<std::size_t>(std::min(bytes, fetched_ahead)));
  }
  unpack(buffer, offset, in, bytes);
}

} // namespace near::datatype
