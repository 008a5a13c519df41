// Cuts a list of blocks into moves of known width.
#pragma once

#include "copy/strided.h"

#include <vector>

namespace near::copy {

/// A list of moves, and the memory that it lies in.
struct CutBlocks {
  std::vector<Move> memory;
  Moves moves{}; ///< moves.all is null if there are none
};

/// Returns the moves that copy these blocks; those of one block may overlap. None if blocks overlap, since the last of them is to be
/// scattered last, if one ends beyond 2 GiB, or if the moves would be more than `most_moves`: a loop over the blocks then takes as long.
CutBlocks cut(Blocks blocks);
inline constexpr std::size_t most_moves = 64;

} // namespace near::copy
