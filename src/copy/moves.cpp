// See moves.h.
#include "copy/moves.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace near::copy {
namespace {

constexpr std::size_t widest = std::size_t{1} << (Moves::widths - 1);

struct SizedMove {
  Move move;
  std::size_t width;
};

/// Appends the moves of a block of `bytes` bytes. Returns false, possibly after adding some of them, if there are too many.
bool cut_block(Move at, std::size_t bytes, std::vector<SizedMove>& into) {
  if (bytes > most_moves * widest) return false;
  const auto add = [&](std::size_t offset, std::size_t width) {
    const auto by = static_cast<std::int32_t>(offset);
    into.push_back({{at.at + by, at.packed + by}, width});
  };
  std::size_t done = 0;
  for (; bytes - done > 2 * widest; done += widest) add(done, widest);
  const std::size_t left = bytes - done, width = std::min(std::bit_floor(left), widest);
  add(done, width);
  if (left != width) add(bytes - width, width);
  return into.size() <= most_moves;
}

/// Whether the positions of all bytes of the blocks fit in 32 bits: the second move of a block begins inside it.
bool have_near_ends(Blocks blocks) {
  bool near = true;
  for (std::size_t i = 0; i < blocks.count; ++i)
    near &= std::int64_t{blocks.at[i]} + blocks.start[i + 1] - blocks.start[i] <=
            std::numeric_limits<std::int32_t>::max();
  return near;
}

bool overlap(Blocks blocks) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  ranges.reserve(blocks.count);
  for (std::size_t i = 0; i < blocks.count; ++i)
    ranges.emplace_back(blocks.at[i], std::int64_t{blocks.at[i]} + blocks.start[i + 1] - blocks.start[i]);
  std::sort(ranges.begin(), ranges.end());
  const auto reaches_into = [](const auto& one, const auto& next) { return next.first < one.second; };
  return std::adjacent_find(ranges.begin(), ranges.end(), reaches_into) != ranges.end();
}

} // namespace

CutBlocks cut(Blocks blocks) {
  if (!have_near_ends(blocks) || overlap(blocks)) return {};
  std::vector<SizedMove> sized;
  sized.reserve(2 * blocks.count);
  for (std::size_t i = 0; i < blocks.count; ++i) {
    const Move at{blocks.at[i], blocks.start[i] - blocks.start[0]};
    if (!cut_block(at, static_cast<std::size_t>(blocks.start[i + 1] - blocks.start[i]), sized)) return {};
  }
  CutBlocks made;
  made.memory.reserve(sized.size());
  for (std::size_t i = 0; i < Moves::widths; ++i)
    for (const SizedMove& each : sized) {
      if (each.width != widest >> i) continue;
      made.memory.push_back(each.move);
      ++made.moves.of_width[i];
    }
  made.moves.all = made.memory.data();
  return made;
}

} // namespace near::copy
