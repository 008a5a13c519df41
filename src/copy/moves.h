// Cuts a list of blocks into moves of known width.
#pragma once

#include "copy/strided.h"

#include <vector>

namespace near::copy {

/// A list of moves, and the memory that holds it.
struct CutBlocks {
  std::vector<Move> memory;
  Moves moves{}; ///< moves.all is null if there are no moves
};

/// Returns the moves that copy these blocks; moves of one block may overlap. Returns none if
/// blocks overlap (the last of them must be scattered last), if a block ends beyond 2 GiB, or
/// if there would be more than `most_moves` moves: a loop over the blocks is then as fast.
CutBlocks cut(Blocks blocks);
inline constexpr std::size_t most_moves = 64;

} // namespace near::copy
