#include "segment/traffic.h"

#include "os/pages.h"

#include <algorithm>

namespace near::segment {

const char* path_name(Path path) {
  switch (path) {
  case Path::inlined: return "inline";
  case Path::packet: return "packet";
  case Path::direct: return "direct";
  case Path::cma: return "cma";
  case Path::pipelined: return "pipelined";
  case Path::count: break;
  }
  return "?";
}

std::map<std::uint32_t, ByPath> traffic_of(const Segment& segment, int descriptor, std::uint32_t row) {
  const std::uint32_t rows = segment.rows();
  const Offset begin = base::load_once(segment.control(row).traffic), end = begin + traffic_bytes(rows);
  const Offset region = segment.region(row), region_end = region + segment.stride();
  std::map<std::uint32_t, ByPath> found;
  bool plausible = begin % sizeof(Traffic) == 0 && begin >= region && begin < end && end <= region_end;
  Offset first = 0, behind = begin;
  while (plausible && behind < end && os::next_data(descriptor, behind, end, first, behind))
    for (Offset at = std::max(first, begin); at < behind; at += sizeof(Traffic)) {
      const auto& sent = *segment.at<Traffic>(at);
      Amount amount{sent.messages.load_relaxed(), sent.bytes.load_relaxed()};
      std::uint64_t index = (at - begin) / sizeof(Traffic);
      if (amount.messages != 0) found[static_cast<std::uint32_t>(index % rows)][index / rows] = amount;
    }
  return found;
}

Amount sent_elsewhere(const Segment& segment, std::uint32_t row) {
  const Counters& counters = segment.control(row).counters;
  return {counters.network_messages.load_relaxed(), counters.network_bytes.load_relaxed()};
}

} // namespace near::segment
