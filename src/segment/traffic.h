// What each process has sent to each other process: counted by the sender, read by tools.
//
// A table in the sender's region with a column for each path and a row for each receiver. Four receivers
// share a cache line, so a process that sends to many touches few lines:
//
//   | inline: to 0, to 1, ... to rows-1 | packet: to 0, ... | direct: ... | cma: ... | pipelined: ... |
//
// Its pages are not reserved: the sender's first message of a kind allocates one. A reader must not allocate
// the others (reading a hole does), so it asks the file which pages exist.
#pragma once

#include "segment/segment.h"

#include <array>
#include <map>

namespace near::segment {

/// How the bytes of a message reach another process.
enum class Path : std::uint32_t { inlined, packet, direct, cma, pipelined, count };
inline constexpr std::size_t paths = static_cast<std::size_t>(Path::count);
const char* path_name(Path path);

/// Messages from one process to another by one path. One writer; a reader may see a message without its
/// bytes.
struct Traffic {
  Atomic<std::uint64_t> messages;
  Atomic<std::uint64_t> bytes; ///< of payload
};
static_assert(sizeof(Traffic) == 16, "none lies on two lines, or on two pages");

inline std::uint64_t traffic_bytes(std::uint32_t rows) { return paths * rows * sizeof(Traffic); }

/// A copy of one Traffic entry.
struct Amount {
  std::uint64_t messages = 0, bytes = 0;
  Amount& operator+=(const Amount& other) {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
};
using ByPath = std::array<Amount, paths>;

/// What the process in `row` has sent to other machines. Precondition: has_region().
Amount sent_elsewhere(const Segment& segment, std::uint32_t row);
/// What the process in `row` has sent, by receiver; receivers of nothing are omitted. Precondition:
/// has_region(). `descriptor` is the segment's. Checks what the process has written.
std::map<std::uint32_t, ByPath> traffic_of(const Segment& segment, int descriptor, std::uint32_t row);

} // namespace near::segment
