// Blocks whose lines share few sets of the first-level cache, as the columns of many matrices do.
//
// A processor has some hundred stores under way, and fetches the lines of all of them. If more of these lines belong to a set than it
// has ways, some leave the cache before they are stored into, and are fetched again: scattering takes up to four times as long. So
// such a block is copied by narrow moves, or several times, until the moves under way concern no more lines than fit. A move that
// hits the cache costs little beside one that does not. Loads that follow one another closely suffer as well, but only among many blocks.
//
// What kernel.h says about internal linkage holds here too.
#pragma once

#include "copy/strided.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {
namespace {

#if defined(__x86_64__)
constexpr std::size_t bytes_of_way =
    4096; // in all processors: the number of a set is part of the offset in a page
#else
constexpr std::size_t bytes_of_way = 0; // not measured
#endif
constexpr std::size_t bytes_of_line = 64, ways = 12;
/// More blocks miss the TLB, and then narrow moves take longer.
constexpr std::size_t most_paced = 16384;

constexpr std::size_t lines_of(std::size_t bytes) { return (bytes + bytes_of_line - 1) / bytes_of_line; }

/// In how many sets blocks of so many bytes lie, `stride` bytes apart.
inline std::size_t sets_of(std::size_t bytes, std::ptrdiff_t stride) {
  const auto apart = static_cast<std::size_t>(stride);
  const std::size_t shared = apart & (0 - apart); // the largest power of two that divides it
  if (shared < bytes_of_line) return bytes_of_way / bytes_of_line;
  return (shared < bytes_of_way ? bytes_of_way / shared : 1) * lines_of(bytes);
}

/// How many stores each of so many lines needs; 0 if one is enough.
inline std::size_t stores_of_line(std::size_t lines, std::size_t sets) {
  const std::size_t kept = sets * ways;
  return lines > (sets == 1 ? 2 * kept : kept + kept / 4) ? ways / sets + 1 : 0;
}
/// How often all stores into a line are made, if there are `lines` lines `stride` bytes apart, with `stores` stores each.
inline std::size_t times_to_store(std::size_t lines, std::ptrdiff_t stride, std::size_t stores) {
  constexpr std::size_t few = 8; // sets
  const std::size_t sets = sets_of(1, stride);
  if (bytes_of_way == 0 || sets > few) return 1;
  const std::size_t needed = stores_of_line(lines, sets);
  return needed <= stores ? 1 : (needed + stores - 1) / stores;
}

/// How many moves each line of such a block needs; 0 if it is copied like others.
template <bool packs>
std::size_t moves_of_line(const Grid& grid) {
  const std::size_t blocks = grid.count * grid.rows, bytes = grid.bytes;
  if (bytes_of_way == 0 || grid.stride == 0 || blocks > most_paced) return 0;
  const std::size_t sets = sets_of(bytes, grid.stride), kept = sets * ways / lines_of(bytes);
  if (sets > (bytes <= bytes_of_line ? 8 : 4)) return 0;
  if (!packs) return stores_of_line(blocks * lines_of(bytes), sets);
  if (blocks <= (bytes < bytes_of_line ? 32 : 2) * kept) return 0;
  if (bytes <= 8) return sets <= 2 ? 3 : 1;
  if (bytes > bytes_of_line) return sets == 2 ? 3 : 0;
  return sets == 1 ? 8 : sets == 2 ? 4 : 0;
}

/// A block of `width` bytes, moved by words.
template <std::size_t width, std::size_t word>
struct Words {
  static constexpr std::size_t moves(std::size_t) { return width / word; }
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t) {
    for (std::size_t at = 0; at < width; at += word) {
      std::memcpy(to + at, from + at, word);
      asm volatile("" ::: "memory"); // the compiler would put moves together
    }
  }
};
/// The same of any number of words.
template <std::size_t word>
struct ManyWords {
  static constexpr std::size_t moves(std::size_t bytes) { return bytes / word; }
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += word) {
      std::memcpy(to + at, from + at, word);
      asm volatile("" ::: "memory");
    }
  }
};

template <bool packs, class Block>
void copy_paced(std::byte* packed, std::byte* strided, const Grid& grid) {
  const std::size_t bytes = grid.bytes, count = grid.count, moves = Block::moves(bytes);
  const std::size_t times = (moves_of_line<packs>(grid) * lines_of(bytes) + moves - 1) / moves;
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

/// The function for blocks that share few sets; nullptr for others.
template <bool packs>
CopyGrid paced_copy(const Grid& grid) {
  const std::size_t moves = moves_of_line<packs>(grid);
  if (moves == 0) return nullptr;
  switch (grid.bytes) {
  case 4: return copy_paced<packs, Words<4, 4>>;
  case 8: return copy_paced<packs, Words<8, 8>>;
  case 12: return copy_paced<packs, Words<12, 4>>;
  case 16: return copy_paced<packs, Words<16, 8>>;
  case 24: return copy_paced<packs, Words<24, 8>>;
  case 32: return copy_paced<packs, Words<32, 8>>;
  case 40: return copy_paced<packs, Words<40, 8>>;
  case 48: return copy_paced<packs, Words<48, 8>>;
  case 56: return copy_paced<packs, Words<56, 8>>;
  case 64: return moves <= 4 ? copy_paced<packs, Words<64, 16>> : copy_paced<packs, Words<64, 8>>;
  default: break;
  }
  if (grid.bytes < bytes_of_line) return nullptr; // of other lengths few were measured
  if (grid.bytes % 16 == 0) return copy_paced<packs, ManyWords<16>>;
  return grid.bytes % 8 == 0 ? copy_paced<packs, ManyWords<8>> : nullptr;
}

} // namespace
} // namespace near::copy
