// Parsers for /proc/<pid>/numa_maps and /proc/<pid>/smaps. Pure functions of text.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace near::place {

using base::Result;

/// Bytes by node number.
using BytesOn = std::map<int, std::uint64_t>;

/// A line of numa_maps: a mapping, and its pages in memory. Counts are pages of page_bytes.
struct NumaLine {
  std::uint64_t begin = 0;
  std::string policy; ///< "default", "local", "bind:0-1", "prefer (many):0-1", "weighted interleave:0,2", ...
  std::string file;   ///< path; "" for memory without a file
  bool heap = false, stack = false, huge = false;
  std::uint64_t anonymous = 0, dirty = 0, mapped = 0, most_mappers = 0, swap_cache = 0;
  std::uint64_t page_bytes = 0; ///< 0: not given, since the line has no pages
  std::map<int, std::uint64_t> pages_on;

  BytesOn bytes_on() const;
};
/// Fails with Code::invalid and the line if a line cannot be understood. Unknown words are skipped: newer
/// kernels have more.
Result parse_numa_maps(std::string_view text, std::vector<NumaLine>& lines);

/// The nodes named by a policy: {0, 1} for "bind:0-1", {2} for "prefer=static:2"; {} for "default" and
/// "local".
std::vector<int> nodes_of_policy(std::string_view policy);

/// A mapping in smaps. Sizes are in bytes.
struct SmapsEntry {
  std::uint64_t begin = 0, end = 0;
  std::string permissions; ///< "rw-p"
  std::uint64_t offset = 0;
  std::string device;
  std::uint64_t inode = 0;
  std::string name; ///< path, "[heap]", ...; "" for memory without a file
  std::uint64_t page_bytes = 0, resident = 0, anonymous = 0, swapped = 0;
  std::uint64_t huge = 0; ///< in transparent huge pages
  std::string flags;      ///< "rd wr mr mw me ac"; "" if the kernel does not report them

  bool shared() const { return permissions.size() == 4 && permissions[3] == 's'; }
};
/// Fails with Code::invalid and the line if a line cannot be understood. Unknown keys are skipped.
Result parse_smaps(std::string_view text, std::vector<SmapsEntry>& entries);

} // namespace near::place
