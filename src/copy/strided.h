// Copies between consecutive bytes and separate blocks of equal length: what packing and unpacking of datatypes
// consists of.
//
// One implementation is chosen at start-up, together with the kernel for streaming stores (copy.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace near::copy {

struct Moves;
struct Windows;

/// Rows of blocks. Block i of row r lies at r * row_stride + i * stride, in bytes; a stride may be negative, zero, or shorter than
/// a block. With `at`, the blocks are instead listed as in Offsets, or, with `start`, as in Blocks: one row, without strides. With
/// `moves`, these copy all blocks, and nothing else is read. Only the functions for one element of one window (WindowFunctions in
/// windows.h) read `windows`, and they read nothing else.
struct Grid {
  std::size_t bytes = 0; ///< of one block; not 0, unless there is a `start`, `moves` or only `windows`
  std::size_t count = 0; ///< blocks in a row
  std::ptrdiff_t stride = 0;
  std::size_t rows = 1;
  std::ptrdiff_t row_stride = 0;
  const std::int32_t* at = nullptr;
  const std::int32_t* start = nullptr;
  const Moves* moves = nullptr;
  const Windows* windows = nullptr;
};

/// Where listed blocks lie, in bytes. Plain pointers, since files for newer processors must not instantiate functions of the
/// standard library (kernel.h).
struct Offsets {
  const std::int32_t* at;
  std::size_t count;
};
struct WideOffsets {
  const std::int64_t* at;
  std::size_t count;
};

/// Offsets in half the memory: each group of `group` neighbours has one base and 16-bit distances from it. Block i of the
/// list lies at base[i / group] + at[i]; blocks [first, first + count) are meant.
struct ShortOffsets {
  static constexpr std::size_t group = 64;
  const std::uint16_t* at;
  const std::int32_t* base;
  std::size_t first, count;
};

/// Listed blocks of any lengths. Block i lies at at[i] and holds the packed bytes from start[i] - start[0] to start[i + 1] -
/// start[0], so there is one more start than there are blocks. No block is empty.
struct Blocks {
  const std::int32_t* at;
  const std::int32_t* start;
  std::size_t count;
};
/// Copies of known width: from `at` in memory to `packed` in the packed bytes, or back.
struct Move {
  std::int32_t at, packed;
};
/// A few blocks of different lengths, cut into moves (moves.h): first those of 32 bytes,
/// then those of 16, and so on down to those of one. Their order never changes, so the
/// processor can predict it; a loop over blocks of different lengths would be unpredictable.
struct Moves {
  static constexpr std::size_t widths = 6;
  const Move* all;
  std::uint8_t of_width[widths]; ///< how many of 32, 16, 8, 4, 2 and 1 bytes
};
/// The same blocks repeated `count` times, each `extent` bytes after
/// the previous one in memory, and `bytes` bytes in the packed bytes.
struct Repeats {
  std::size_t count;
  std::ptrdiff_t extent;
  std::size_t bytes;
};

// Gathering copies the blocks, in order, to consecutive bytes; scattering is the inverse. Memory may have any alignment; the packed
// bytes must not overlap the blocks. Nothing outside the blocks and the packed bytes is written, but a block may be written several
// times, always with the same bytes. Gaps between elements that are at most four elements apart may be read, but nothing else
// outside. If blocks overlap, either of them may be scattered last.

void gather(std::byte* packed, const std::byte* from, const Grid& grid);
void scatter(std::byte* to, const std::byte* packed, const Grid& grid);
/// Blocks of `bytes` bytes, which is not 0, at `from` plus each offset.
void gather(std::byte* packed, const std::byte* from, std::size_t bytes, Offsets offsets);
void scatter(std::byte* to, const std::byte* packed, std::size_t bytes, Offsets offsets);
void gather(std::byte* packed, const std::byte* from, std::size_t bytes, WideOffsets offsets);
void scatter(std::byte* to, const std::byte* packed, std::size_t bytes, WideOffsets offsets);
void gather(std::byte* packed, const std::byte* from, std::size_t bytes, ShortOffsets offsets);
void scatter(std::byte* to, const std::byte* packed, std::size_t bytes, ShortOffsets offsets);
void gather(std::byte* packed, const std::byte* from, Blocks blocks);
void scatter(std::byte* to, const std::byte* packed, Blocks blocks);
void gather(std::byte* packed, const std::byte* from, Blocks blocks, const Repeats& repeats);
void scatter(std::byte* to, const std::byte* packed, Blocks blocks, const Repeats& repeats);

/// Copies the blocks of one grid to those of another. Both have equal numbers of rows, blocks
/// in a row and bytes in a block, and no list. Not inlined: when GCC considered the caller
/// cold, it copied known lengths by string instructions, which take three times as long.
[[gnu::hot]] [[gnu::noinline]] void between(std::byte* to, const Grid& to_grid, const std::byte* from,
                                            const Grid& from_grid);

// The functions that these calls use, for callers that copy the same shape repeatedly.

/// Copies a grid in the direction for which it was chosen. Both pointers are non-const, since one type serves both directions.
using CopyGrid = void (*)(std::byte* packed, std::byte* strided, const Grid& grid);
/// The implementation for this grid; it ignores `windows`. Grids that differ in a number of blocks or rows may have different ones.
CopyGrid gathering(const Grid& grid);
CopyGrid scattering(const Grid& grid);

/// Whether the grid is copied one line at a time, since each line holds blocks of many rows: columns of a matrix.
bool is_by_columns(const Grid& grid);

/// Whether the blocks share so few sets of a cache that gathering and scattering, in parts, is faster than between().
bool is_faster_in_parts(const Grid& to_grid);

/// How a processor fetches the lines of its stores that miss the cache.
/// This decides how blocks are copied whose lines share sets of the cache.
enum class StoreLines {
  in_turn,  ///< a few at a time: Zen 3, and assumed for processors that were not measured
  together, ///< those of all stores under way: Zen 5
};
/// How this processor does it. Tests and benchmarks may change it before any
/// datatype exists, since datatypes keep the functions that they have chosen.
extern StoreLines store_lines;

/// An implementation for one instruction set, which chooses by the shape.
struct StridedKernel {
  CopyGrid (*gathering)(const Grid& grid);
  CopyGrid (*scattering)(const Grid& grid);
  void (*gather_listed)(std::byte* packed, std::byte* from, std::size_t bytes, Offsets offsets);
  void (*scatter_listed)(std::byte* packed, std::byte* to, std::size_t bytes, Offsets offsets);
  void (*gather_widely)(std::byte* packed, std::byte* from, std::size_t bytes, WideOffsets offsets);
  void (*scatter_widely)(std::byte* packed, std::byte* to, std::size_t bytes, WideOffsets offsets);
  void (*gather_shortly)(std::byte* packed, std::byte* from, std::size_t bytes, ShortOffsets offsets);
  void (*scatter_shortly)(std::byte* packed, std::byte* to, std::size_t bytes, ShortOffsets offsets);
  void (*gather_unequal)(std::byte* packed, std::byte* from, Blocks blocks);
  void (*scatter_unequal)(std::byte* packed, std::byte* to, Blocks blocks);
  void (*gather_repeated)(std::byte* packed, std::byte* from, Blocks blocks, const Repeats& repeats);
  void (*scatter_repeated)(std::byte* packed, std::byte* to, Blocks blocks, const Repeats& repeats);
};
// Each is in the file of the same name.
extern const StridedKernel strided_avx512, strided_avx2, strided_baseline;

} // namespace near::copy
