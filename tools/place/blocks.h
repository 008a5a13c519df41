// The blocks of memory that the ranks' arenas have handed out, as the ranks list them in the segment.
#pragma once

#include "segment/segment.h"

#include <vector>

namespace near::place {

using segment::Offset;

/// The role of an arena's pages that are in no block of a window and in no kept one.
inline constexpr const char* arena_role = "arena";

/// What an arena has handed out, to whom, and where it was asked to be.
struct Listed {
  Offset begin, end;
  int owner;
  int node; ///< -1: nowhere in particular
  const char* role;
};

/// Whether one of the blocks, which are in order, holds the page.
bool is_listed(Offset page, const std::vector<Listed>& blocks);

/// Whether part of the segment is of reserved huge pages, of the size that this kernel has.
bool has_reserved_pages(const segment::Segment& segment);

/// The blocks of all ranks, in the order of their beginnings; of two that overlap the first.
std::vector<Listed> listed_blocks(const segment::Segment& segment);

/// What was listed now, and beside that what was listed earlier: a window may come or go between the look at the lists
/// and the look at the pages.
std::vector<Listed> united(const std::vector<Listed>& now, const std::vector<Listed>& earlier);

} // namespace near::place
