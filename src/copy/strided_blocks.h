// Blocks of different lengths, one list of them or the same few again and again, and the choice among all strided copies.
//
// A processor can predict neither how long the next block is nor, therefore, when a loop over it ends, and a wrong guess takes
// as long as copying several blocks. So a list is copied with as few branches as the instruction set allows
// (`Isa::move_block`), and repeated blocks by columns: the first block of many elements, then their second block, each with a
// move of known width. A few blocks that are copied again and again are cut into moves once (moves.h).
//
// What kernel.h says about internal linkage holds here too.
#pragma once

#include "copy/strided_kernel.h"

namespace near::copy {
namespace {

/// More than 64 bytes.
template <class Isa>
[[gnu::always_inline]] inline void move_long(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes <= most_lines)
    Lines<Isa>::move(to, from, bytes);
  else
    Long::move(to, from, bytes);
}
/// A block of any length except 0.
template <class Isa>
[[gnu::always_inline]] inline void move_any(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 64)
    move_long<Isa>(to, from, bytes);
  else if (bytes >= 32)
    Ends<32>::move(to, from, bytes);
  else if (bytes >= 16)
    Ends<16>::move(to, from, bytes);
  else if (bytes >= 8)
    Ends<8>::move(to, from, bytes);
  else if (bytes >= 4)
    Ends<4>::move(to, from, bytes);
  else if (bytes >= 2)
    Ends<2>::move(to, from, bytes);
  else
    Whole<1>::move(to, from, 1);
}

/// move_block() for an instruction set without masks.
template <class Isa>
struct MovesByLength {
  template <bool packs>
  static void move_block(std::byte* packed, std::byte* block, std::size_t bytes, std::size_t) {
    return packs ? move_any<Isa>(packed, block, bytes) : move_any<Isa>(block, packed, bytes);
  }
};

/// `Isa::move_block<packs>(packed, block, bytes, room)` copies one block. The `room` bytes from `packed` on are packed bytes.
template <bool packs, class Isa>
void copy_unequal(std::byte* packed, std::byte* strided, Blocks blocks) {
  const std::int32_t *const at = blocks.at, *const start = blocks.start;
  const std::int32_t end = start[blocks.count];
  packed -= start[0];
  for (std::size_t i = 0; i < blocks.count; ++i)
    Isa::template move_block<packs>(packed + start[i], strided + at[i],
                                    static_cast<std::size_t>(start[i + 1] - start[i]),
                                    static_cast<std::size_t>(end - start[i]));
}

template <bool packs, class Isa>
void copy_unequal_grid(std::byte* packed, std::byte* strided, const Grid& grid) {
  copy_unequal<packs, Isa>(packed, strided, Blocks{grid.at, grid.start, grid.count});
}

template <bool packs, std::size_t width>
[[gnu::always_inline]] inline const Move* make_moves(std::byte* packed, std::byte* strided, const Move* next,
                                                     std::size_t count) {
  for (const Move* const end = next + count; next != end; ++next)
    move_one<packs, Whole<width>>(packed + next->packed, strided + next->at, width);
  return next;
}
template <bool packs>
void copy_moves(std::byte* packed, std::byte* strided, const Grid& grid) {
  const Moves& moves = *grid.moves;
  const Move* next = moves.all;
  next = make_moves<packs, 32>(packed, strided, next, moves.of_width[0]);
  next = make_moves<packs, 16>(packed, strided, next, moves.of_width[1]);
  next = make_moves<packs, 8>(packed, strided, next, moves.of_width[2]);
  next = make_moves<packs, 4>(packed, strided, next, moves.of_width[3]);
  next = make_moves<packs, 2>(packed, strided, next, moves.of_width[4]);
  make_moves<packs, 1>(packed, strided, next, moves.of_width[5]);
}

/// How many elements stay in the first-level cache, with their packed bytes, from one column to the next.
inline std::size_t elements_together(const Repeats& repeats) {
  constexpr std::size_t stays = 16384;
  const auto extent = static_cast<std::size_t>(repeats.extent < 0 ? -repeats.extent : repeats.extent);
  const std::size_t each = extent + repeats.bytes;
  if (repeats.count * each <= stays) return repeats.count; // a division takes as long as several elements
  return each < stays ? stays / each : 1;
}
template <bool packs, class Isa>
void copy_repeated(std::byte* packed, std::byte* strided, Blocks blocks, const Repeats& repeats) {
  const std::size_t most = elements_together(repeats), size = repeats.bytes;
  const std::ptrdiff_t extent = repeats.extent;
  for (std::size_t left = repeats.count; left != 0;) {
    const std::size_t together = left < most ? left : most;
    for (std::size_t i = 0; i < blocks.count; ++i) {
      const auto bytes = static_cast<std::size_t>(blocks.start[i + 1] - blocks.start[i]);
      std::byte* const column = packed + (blocks.start[i] - blocks.start[0]);
      std::byte* const first = strided + blocks.at[i];
      with_move<Isa>(bytes, [=]<class Move>(Move) {
        std::byte *next = column, *block = first;
#pragma GCC unroll 4
        for (std::size_t e = 0; e < together; ++e, next += size, block += extent)
          move_one<packs, Move>(next, block, bytes);
      });
    }
    left -= together;
    packed += together * size;
    strided += static_cast<std::ptrdiff_t>(together) * extent;
  }
}

/// Whether each of many elements has a line of its own, and all these lines fit into the
/// second-level cache. Then moving elements of 4 bytes one by one keeps more loads under way,
/// and is faster than combining them in a register, which takes three instructions each.
inline bool are_in_lines_of_their_own(const Grid& grid) {
  constexpr std::size_t least = 512, most = 16384;
  const std::size_t elements = grid.count * grid.rows;
  return elements >= least && elements <= most && (grid.stride >= 64 || grid.stride <= -64);
}

/// `Isa::elements<packs, width>(stride, one_row)` returns a function for such elements, or nullptr.
template <bool packs, class Isa>
CopyGrid grid_copy(const Grid& grid) {
  if (grid.moves != nullptr) return copy_moves<packs>;
  if (is_transposed(grid))
    return with_move<Isa>(grid.bytes,
                          []<class Move>(Move) -> CopyGrid { return copy_transposed<packs, Move>; });
  if (grid.start != nullptr) return copy_unequal_grid<packs, Isa>;
  if (grid.at != nullptr)
    return with_move<Isa>(grid.bytes,
                          []<class Move>(Move) -> CopyGrid { return copy_listed_grid<packs, Move>; });
  const bool one_row = grid.rows == 1;
  if (one_row && grid.count == 1)
    return with_move<Isa>(grid.bytes, []<class Move>(Move) -> CopyGrid { return copy_one<packs, Move>; });
  const std::size_t moves = moves_of_line<packs>(grid);
  if (moves == 1)
    return with_move<Isa>(grid.bytes, []<class Move>(Move) -> CopyGrid { return copy_in_turn<packs, Move>; });
  if (CopyGrid paced = moves != 0 ? paced_copy<packs>(grid, moves) : nullptr) return paced;
  CopyGrid special = nullptr;
  if (one_row && grid.bytes == 8) special = few_copy<packs, 8>(grid.count);
  if (special != nullptr) return special;
  if (grid.bytes == 8)
    special = Isa::template elements<packs, 8>(grid.stride, one_row);
  else if (grid.bytes == 4 && !(packs && are_in_lines_of_their_own(grid)))
    special = Isa::template elements<packs, 4>(grid.stride, one_row);
  else if (grid.bytes == 2)
    special = Isa::template elements<packs, 2>(grid.stride, one_row);
  if (special == nullptr && one_row && grid.bytes == 4) special = few_copy<packs, 4>(grid.count);
  if (special != nullptr) return special;
  if (grid.bytes >= least_by_lines && grid.bytes <= most_lines &&
      grid.bytes * grid.count * grid.rows > most_in_cache)
    return copy_in_turn<packs, AlignedLines<Isa>>;
  return with_move<Isa>(grid.bytes, [=]<class Move>(Move) -> CopyGrid {
    return one_row ? copy_row<packs, Move> : copy_blocks<packs, Move>;
  });
}

template <class Isa>
constexpr StridedKernel strided_kernel_of = {
    grid_copy<true, Isa>,
    grid_copy<false, Isa>,
    copy_listed<true, Isa, Offsets>,
    copy_listed<false, Isa, Offsets>,
    copy_listed<true, Isa, WideOffsets>,
    copy_listed<false, Isa, WideOffsets>,
    copy_shortly<true, Isa>,
    copy_shortly<false, Isa>,
    copy_unequal<true, Isa>,
    copy_unequal<false, Isa>,
    copy_repeated<true, Isa>,
    copy_repeated<false, Isa>,
};

} // namespace
} // namespace near::copy
