// Blocks whose lines share few sets of the first-level cache, as in the columns of many matrices.
//
// A processor that fetches the lines of all its stores under way at once (StoreLines::together in strided.h) has about a hundred of
// them under way. If more of these lines belong to one set than it has ways, some leave the cache before they are stored into, and
// are fetched again: scattering then takes several times as long. So such a block is copied by narrow moves, or several times,
// until the moves under way concern no more lines than fit. A move that hits the cache costs little compared with one that misses.
// Loads in close succession suffer less. Other processors lose less, and narrow moves help them only if all lines are in one set.
// The numbers in this file were found by measurement (doc/adr/0030).
//
// What kernel.h says about internal linkage holds here too.
#pragma once

#include "copy/strided.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {
namespace {

// In the caches of x86 processors a way is one page, since the number of a set is part of the offset in a page.
#if defined(__x86_64__)
constexpr std::size_t bytes_of_way = 4096;
#else
constexpr std::size_t bytes_of_way = 0; // not measured: no block is treated differently
#endif
constexpr std::size_t bytes_of_line = 64, ways = 12;

constexpr std::size_t lines_of(std::size_t bytes) { return (bytes + bytes_of_line - 1) / bytes_of_line; }

/// The largest power of two that divides the stride, at most a way.
inline std::size_t shared_part(std::ptrdiff_t stride) {
  const auto apart = static_cast<std::size_t>(stride);
  const std::size_t part = apart & (0 - apart);
  return part == 0 || part > bytes_of_way ? bytes_of_way : part;
}
/// The number of sets in which lines `stride` bytes apart lie.
inline std::size_t sets_of_lines(std::ptrdiff_t stride) {
  const std::size_t part = shared_part(stride);
  return bytes_of_way / (part < bytes_of_line ? bytes_of_line : part);
}

/// How many stores each line needs if this many lines lie in these sets; 0 if one is enough.
inline std::size_t stores_of_line(std::size_t lines, std::size_t sets) {
  const std::size_t kept = sets * ways;
  return kept != 0 && lines > (sets == 1 ? 2 * kept : kept + kept / 4) ? ways / sets + 1 : 0;
}
/// stores_of_line() for columns that lie side by side.
inline std::size_t stores_of_column_line(std::size_t lines, std::size_t sets) {
  return store_lines == StoreLines::together ? stores_of_line(lines, sets) : 0;
}
/// How many of the stores into a line are repeated if columns that lie side by side have `stores` stores for each line, and lines
/// are `stride` bytes apart. Eight in one set are enough here: twice as many took 1.8 times as long.
inline std::size_t stores_to_repeat(std::ptrdiff_t stride, std::size_t stores) {
  const std::size_t enough = 8 / sets_of_lines(stride);
  return stores < enough ? enough - stores : 0;
}

/// The number of blocks that lie in the same sets. Rows at other distances may lie in others.
inline std::size_t blocks_that_share_sets(const Grid& grid) {
  const bool rows_share = grid.row_stride % static_cast<std::ptrdiff_t>(shared_part(grid.stride)) == 0;
  return grid.count * (rows_share ? grid.rows : 1);
}

template <bool packs>
std::size_t moves_of_lines_together(const Grid& grid) {
  constexpr std::size_t most = 16384; // blocks; more miss the TLB, and then narrow moves take longer
  const std::size_t bytes = grid.bytes, lines = lines_of(bytes);
  if (bytes % 8 != 0 && bytes != 4 && bytes != 12) return 0;
  const std::size_t sets = sets_of_lines(grid.stride) * lines;
  // In eight sets, two moves per line are enough, and only blocks of these lengths are copied by one.
  const bool is_one_move = bytes <= 32 && (bytes & (bytes - 1)) == 0;
  if (sets > (is_one_move ? 8 : 4)) return 0;
  const std::size_t blocks = blocks_that_share_sets(grid);
  if (blocks > most) return 0;
  if (!packs) return stores_of_line(blocks * lines, sets);
  if (blocks * lines <= (bytes < bytes_of_line ? 32 : 4) * sets * ways) return 0;
  if (bytes <= 8) return sets == 1 ? 3 : 0;
  if (lines > 1) return sets == 2 ? 3 : 0;
  return sets == 1 ? 8 : sets == 2 ? 4 : sets == 4 ? 3 : 0;
}
template <bool packs>
std::size_t moves_of_lines_in_turn(const Grid& grid) {
  constexpr std::size_t fewest = 32, most = 1024, most_words = 16384; // blocks
  const std::size_t bytes = grid.bytes, sets = sets_of_lines(grid.stride);
  if (bytes > bytes_of_line || sets > (packs ? 1 : 2)) return 0;
  const std::size_t blocks = blocks_that_share_sets(grid);
  if (blocks < fewest) return 0;
  if (packs) return bytes == 4 || bytes == 8 ? 2 : 1;
  if (sets == 2) return 1;
  if (bytes == 4 || bytes == 8) return blocks <= most_words ? 4 : 1;
  return bytes <= 32 && (bytes % 8 == 0 || bytes == 12) && blocks <= most ? 2 : 1;
}
/// The least number of moves that each line of the blocks needs; 1 if the blocks are copied one per iteration; 0 if they need no
/// special treatment.
template <bool packs>
std::size_t moves_of_line(const Grid& grid) {
  if (bytes_of_way == 0 || grid.bytes == 0 || grid.stride == 0) return 0;
  return store_lines == StoreLines::together ? moves_of_lines_together<packs>(grid)
                                             : moves_of_lines_in_turn<packs>(grid);
}

/// Moves a block by words. `known` is its length, or 0.
template <std::size_t word, std::size_t known = 0>
struct Words {
  static constexpr std::size_t length(std::size_t bytes) { return known != 0 ? known : bytes; }
  static constexpr std::size_t moves(std::size_t bytes) { return length(bytes) / word; }
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < length(bytes); at += word) {
      std::memcpy(to + at, from + at, word);
      asm volatile("" ::: "memory"); // otherwise the compiler would merge moves
    }
  }
};

template <bool packs, class Block>
void copy_paced(std::byte* packed, std::byte* strided, const Grid& grid) {
  const std::size_t bytes = grid.bytes, count = grid.count, moves = Block::moves(bytes);
  const std::size_t needed = moves_of_line<packs>(grid) * lines_of(bytes);
  const std::size_t times = needed > moves ? (needed + moves - 1) / moves : 1;
  const std::ptrdiff_t stride = grid.stride;
  for (std::size_t rows = grid.rows; rows != 0; --rows, strided += grid.row_stride) {
    std::byte* block = strided;
    for (std::size_t i = 0; i < count; ++i, packed += bytes, block += stride)
      for (std::size_t left = times; left != 0; --left) {
        if constexpr (packs)
          Block::move(packed, block, bytes);
        else
          Block::move(block, packed, bytes);
      }
  }
}

/// The function for blocks whose lines need `moves` moves each; nullptr if none exists for their length.
template <bool packs>
CopyGrid paced_copy(const Grid& grid, std::size_t moves) {
  switch (grid.bytes) {
  case 4: return copy_paced<packs, Words<4, 4>>;
  case 8: return copy_paced<packs, Words<8, 8>>;
  case 12: return copy_paced<packs, Words<4, 12>>;
  case 16: return copy_paced<packs, Words<8, 16>>;
  case 24: return copy_paced<packs, Words<8, 24>>;
  case 32: return copy_paced<packs, Words<8, 32>>;
  case 40: return copy_paced<packs, Words<8, 40>>;
  case 48: return copy_paced<packs, Words<8, 48>>;
  case 56: return copy_paced<packs, Words<8, 56>>;
  case 64: return moves <= 4 ? copy_paced<packs, Words<16, 64>> : copy_paced<packs, Words<8, 64>>;
  default: break;
  }
  if (grid.bytes % 16 == 0) return copy_paced<packs, Words<16>>;
  return grid.bytes % 8 == 0 ? copy_paced<packs, Words<8>> : nullptr;
}

} // namespace
} // namespace near::copy
