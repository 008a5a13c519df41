// The blocks allocated by the ranks' arenas, as listed by the ranks in the segment.
#pragma once

#include "segment/segment.h"

#include <vector>

namespace near::place {

using segment::Offset;

/// The role of an arena's pages that belong neither to a window nor to a kept block.
inline constexpr const char* arena_role = "arena";

/// A block that an arena has allocated: its owner, and the node that was requested.
struct Listed {
  Offset begin, end;
  int owner;
  int node; ///< -1: no particular node
  const char* role;
};

/// Whether one of the blocks contains the page. The blocks are in order.
bool is_listed(Offset page, const std::vector<Listed>& blocks);

/// Whether part of the segment consists of reserved huge pages of the size that this kernel has.
bool has_reserved_pages(const segment::Segment& segment);

/// The blocks of all ranks in address order; of two that overlap, only the first.
std::vector<Listed> listed_blocks(const segment::Segment& segment);

/// The blocks that are listed now, and those listed earlier that do not overlap them: a window may be created
/// or freed between reading the lists and reading the pages.
std::vector<Listed> united(const std::vector<Listed>& now, const std::vector<Listed>& earlier);

} // namespace near::place
