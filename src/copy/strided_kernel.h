// The common part of the strided copies, over the vector code of an instruction set.
//
// A block is copied by moves whose width the compiler knows: one if the block is as long as a move, otherwise two that
// overlap, and several for long blocks. So nothing outside a block is touched, wherever it ends. The choice is made once
// for all blocks: each kind of move yields a separate function.
//
// Elements of 2, 4 and 8 bytes are not worth a store each: an instruction set may have functions that first combine
// several in a register, or spread a register over them (`Isa::elements`).
//
// What kernel.h says about internal linkage holds here too.
#pragma once

#include "copy/raw.h"
#include "copy/strided_sets.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::copy {
namespace {

// Moves of a block of `bytes` bytes.

template <std::size_t known>
struct Whole {
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t) {
    std::memcpy(to, from, known);
  }
};
/// `width` to 2 * width bytes.
template <std::size_t width>
struct Ends {
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t bytes) {
    struct Word {
      std::byte data[width];
    } first, last;
    std::memcpy(&first, from, width);
    std::memcpy(&last, from + bytes - width, width);
    std::memcpy(to, &first, width);
    std::memcpy(to + bytes - width, &last, width);
  }
};
template <class Isa>
struct Line {
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t) {
    Isa::move_line(to, from);
  }
};
/// More than 64 bytes.
template <class Isa>
struct Lines {
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t bytes) {
#pragma GCC unroll 4
    for (std::size_t at = 0; at + 64 < bytes; at += 64) Isa::move_line(to + at, from + at);
    Isa::move_line(to + bytes - 64, from + bytes - 64);
  }
};
/// Like Lines. Outside the first-level cache, stores that cross lines take longer; here only those at the ends do.
template <class Isa>
struct AlignedLines {
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t bytes) {
    Isa::move_line(to, from);
#pragma GCC unroll 4
    for (std::size_t at = 64 - reinterpret_cast<std::uintptr_t>(to) % 64; at + 64 < bytes; at += 64)
      Isa::move_line(to + at, from + at);
    Isa::move_line(to + bytes - 64, from + bytes - 64);
  }
};
struct Long {
  [[gnu::always_inline]] static void move(std::byte* to, const std::byte* from, std::size_t bytes) {
    raw(to, from, bytes);
  }
};
/// In bytes. Longer blocks use Long.
constexpr std::size_t most_lines = 1024;
/// Blocks of `least_by_lines` to `most_lines` bytes use AlignedLines, one
/// block per iteration, if they have more than `most_in_cache` bytes in all.
constexpr std::size_t least_by_lines = 512, most_in_cache = 32768;

/// Returns choose(move) for the move of blocks of `bytes` bytes.
template <class Isa, class Choose>
[[gnu::always_inline]] inline auto with_move(std::size_t bytes, Choose choose) {
  switch (bytes) {
  case 1: return choose(Whole<1>());
  case 2: return choose(Whole<2>());
  case 4: return choose(Whole<4>());
  case 8: return choose(Whole<8>());
  case 12: return choose(Whole<12>());
  case 16: return choose(Whole<16>());
  case 24: return choose(Whole<24>());
  case 32: return choose(Whole<32>());
  case 64: return choose(Line<Isa>());
  default: break;
  }
  if (bytes < 4) return choose(Ends<2>());
  if (bytes < 8) return choose(Ends<4>());
  if (bytes < 16) return choose(Ends<8>());
  if (bytes < 32) return choose(Ends<16>());
  if (bytes < 64) return choose(Ends<32>());
  if (bytes <= most_lines) return choose(Lines<Isa>());
  return choose(Long());
}

/// One block, in the direction of the copy.
template <bool packs, class Move>
[[gnu::always_inline]] inline void move_one(std::byte* packed, std::byte* block, std::size_t bytes) {
  if constexpr (packs)
    Move::move(packed, block, bytes);
  else
    Move::move(block, packed, bytes);
}

template <bool packs, class Move>
[[gnu::always_inline]] inline void move_row(std::byte* packed, std::byte* block, std::size_t bytes,
                                            std::size_t count, std::ptrdiff_t stride) {
  for (; count >= 4; count -= 4, packed += 4 * bytes, block += 4 * stride) {
    move_one<packs, Move>(packed, block, bytes);
    move_one<packs, Move>(packed + bytes, block + stride, bytes);
    move_one<packs, Move>(packed + 2 * bytes, block + 2 * stride, bytes);
    move_one<packs, Move>(packed + 3 * bytes, block + 3 * stride, bytes);
  }
  for (; count != 0; --count, packed += bytes, block += stride) move_one<packs, Move>(packed, block, bytes);
}

template <bool packs, class Move>
void copy_blocks(std::byte* packed, std::byte* strided, const Grid& grid) {
  const std::size_t bytes = grid.bytes, count = grid.count;
  const std::ptrdiff_t stride = grid.stride, row_stride = grid.row_stride;
  for (std::size_t rows = grid.rows; rows != 0; --rows, packed += bytes * count, strided += row_stride)
    move_row<packs, Move>(packed, strided, bytes, count, stride);
}

// Grids of one row or one block have functions of their own: the loop over rows takes as long as copying a few blocks.
template <bool packs, class Move>
void copy_row(std::byte* packed, std::byte* strided, const Grid& grid) {
  move_row<packs, Move>(packed, strided, grid.bytes, grid.count, grid.stride);
}
template <bool packs, class Move>
void copy_one(std::byte* packed, std::byte* block, const Grid& grid) {
  move_one<packs, Move>(packed, block, grid.bytes);
}

/// One block per iteration. For long blocks, the processor then treats all loads as one stream and prefetches. If each iteration
/// copied four blocks, it would see four streams, each with jumps.
template <bool packs, class Move>
void copy_in_turn(std::byte* packed, std::byte* strided, const Grid& grid) {
  const std::size_t bytes = grid.bytes, count = grid.count;
  const std::ptrdiff_t stride = grid.stride, row_stride = grid.row_stride;
  for (std::size_t rows = grid.rows; rows != 0; --rows, strided += row_stride) {
    std::byte* block = strided;
#pragma GCC unroll 1
    for (std::size_t i = 0; i < count; ++i, packed += bytes, block += stride)
      move_one<packs, Move>(packed, block, bytes);
  }
}

/// Copies a few blocks of `width` bytes in a row, without a loop.
template <bool packs, std::size_t width, std::size_t count>
[[gnu::always_inline]] inline void move_few(std::byte* packed, std::byte* block, std::ptrdiff_t stride) {
  move_one<packs, Whole<width>>(packed, block, width);
  if constexpr (count > 1) move_few<packs, width, count - 1>(packed + width, block + stride, stride);
}
template <bool packs, std::size_t width, std::size_t count>
void copy_few(std::byte* packed, std::byte* strided, const Grid& grid) {
  move_few<packs, width, count>(packed, strided, grid.stride);
}
/// The function for a row of this many blocks; nullptr if there are more than a few.
template <bool packs, std::size_t width>
CopyGrid few_copy(std::size_t count) {
  switch (count) {
  case 2: return copy_few<packs, width, 2>;
  case 3: return copy_few<packs, width, 3>;
  case 4: return copy_few<packs, width, 4>;
  case 5: return copy_few<packs, width, 5>;
  case 6: return copy_few<packs, width, 6>;
  case 7: return copy_few<packs, width, 7>;
  case 8: return copy_few<packs, width, 8>;
  default: return nullptr;
  }
}

/// Copies elements of `width` bytes. Row::copy(packed, strided, stride,
/// count) copies the first elements of a row, and returns how many.
template <bool packs, std::size_t width, class Row>
[[gnu::always_inline]] inline void move_elements(std::byte* packed, std::byte* strided, std::size_t count,
                                                 std::ptrdiff_t stride) {
  const std::size_t done = Row::copy(packed, strided, stride, count);
  // Few are left. Unrolled, this loop would take longer to enter than to run.
  packed += done * width;
  strided += static_cast<std::ptrdiff_t>(done) * stride;
  for (std::size_t left = count - done; left != 0; --left, packed += width, strided += stride)
    move_one<packs, Whole<width>>(packed, strided, width);
}
template <bool packs, std::size_t width, class Row>
void copy_elements(std::byte* packed, std::byte* strided, const Grid& grid) {
  const std::size_t count = grid.count;
  const std::ptrdiff_t stride = grid.stride, row_stride = grid.row_stride;
  for (std::size_t rows = grid.rows; rows != 0; --rows, packed += width * count, strided += row_stride)
    move_elements<packs, width, Row>(packed, strided, count, stride);
}
template <bool packs, std::size_t width, class Row>
void copy_row_of_elements(std::byte* packed, std::byte* strided, const Grid& grid) {
  move_elements<packs, width, Row>(packed, strided, grid.count, grid.stride);
}
/// The function for elements in one row or in several.
template <bool packs, std::size_t width, class Row>
CopyGrid elements_copy(bool one_row) {
  return one_row ? copy_row_of_elements<packs, width, Row> : copy_elements<packs, width, Row>;
}

/// Rows whose blocks lie side by side, so that a line holds blocks of many rows. A copy row by row would need each
/// line once for each of them, and if a row has many lines they would leave the cache in between.
constexpr std::size_t lines_that_stay = 256;
inline bool is_transposed(const Grid& grid) {
  return grid.rows > 1 && grid.row_stride == static_cast<std::ptrdiff_t>(grid.bytes) && grid.bytes <= 32 &&
         grid.count > lines_that_stay && (grid.stride >= 64 || grid.stride <= -64);
}
/// Copies such rows one line at a time.
template <bool packs, class Move>
void copy_transposed(std::byte* packed, std::byte* strided, const Grid& grid) {
  const std::size_t bytes = grid.bytes, count = grid.count, rows = grid.rows, in_line = 64 / bytes;
  const std::ptrdiff_t stride = grid.stride;
  for (std::size_t first = 0; first < rows; first += in_line) {
    const std::size_t together = rows - first < in_line ? rows - first : in_line;
    std::byte *column = packed + first * count * bytes, *block = strided + first * bytes;
    const auto move_first = [&](std::size_t blocks) {
      for (std::size_t r = 0; r < blocks; ++r)
        move_one<packs, Move>(column + r * count * bytes, block + r * bytes, bytes);
    };
    if (packs || stores_of_column_line(count, sets_of_lines(stride)) == 0) {
      for (std::size_t i = 0; i < count; ++i, column += bytes, block += stride)
        for (std::size_t r = 0; r < together; ++r)
          move_one<packs, Move>(column + r * count * bytes, block + r * bytes, bytes);
      continue;
    }
    const std::size_t again = stores_to_repeat(stride, together);
    for (std::size_t i = 0; i < count; ++i, column += bytes, block += stride) {
      move_first(together);
      for (std::size_t done = 0; done < again; done += together) {
        asm volatile("" ::: "memory"); // otherwise the compiler would store once
        move_first(again - done < together ? again - done : together);
      }
    }
  }
}

/// Blocks at[0] to at[count - 1]. Returns where the packed bytes of the next one begin.
template <bool packs, class Move, class Number>
[[gnu::always_inline]] inline std::byte* move_listed(std::byte* packed, std::byte* strided, std::size_t bytes,
                                                     const Number* at, std::size_t count) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4, packed += 4 * bytes) {
    move_one<packs, Move>(packed, strided + at[i], bytes);
    move_one<packs, Move>(packed + bytes, strided + at[i + 1], bytes);
    move_one<packs, Move>(packed + 2 * bytes, strided + at[i + 2], bytes);
    move_one<packs, Move>(packed + 3 * bytes, strided + at[i + 3], bytes);
  }
  for (; i < count; ++i, packed += bytes) move_one<packs, Move>(packed, strided + at[i], bytes);
  return packed;
}
template <bool packs, class Isa, class List>
void copy_listed(std::byte* packed, std::byte* strided, std::size_t bytes, List offsets) {
  with_move<Isa>(bytes, [=]<class Move>(Move) {
    move_listed<packs, Move>(packed, strided, bytes, offsets.at, offsets.count);
  });
}
template <bool packs, class Move>
void copy_listed_grid(std::byte* packed, std::byte* strided, const Grid& grid) {
  move_listed<packs, Move>(packed, strided, grid.bytes, grid.at, grid.count);
}
template <bool packs, class Isa>
void copy_shortly(std::byte* packed, std::byte* strided, std::size_t bytes, ShortOffsets offsets) {
  constexpr std::size_t group = ShortOffsets::group;
  with_move<Isa>(bytes, [=]<class Move>(Move) {
    std::byte* next = packed;
    for (std::size_t i = offsets.first, end = i + offsets.count; i < end;) {
      const std::size_t to_next = group - i % group, here = end - i < to_next ? end - i : to_next;
      next = move_listed<packs, Move>(next, strided + offsets.base[i / group], bytes, offsets.at + i, here);
      i += here;
    }
  });
}

} // namespace
} // namespace near::copy
