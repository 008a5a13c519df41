// The costs on this machine of copying separate blocks: the packing and unpacking of datatypes. Part of the profile.
//
//   caches 32768 1048576 33554432                   bytes of the caches of one processor: first level, second, last
//   call 14000                                      picoseconds for a call, whatever it copies
//   first gather 90000                              ... more, if negative less, for the first blocks in memory (BlockCosts::first)
//   blocks gather equal 8 16 2600 2700 4100 11000   ... for one block of 8 bytes out of every 16 blocks, by Level
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace near::profile {

/// gather: to consecutive bytes, as in packing. scatter: the inverse.
enum class Direction { gather, scatter };
/// How the blocks' positions are given: they are equally far apart, or listed.
enum class Spacing { equal, listed };
/// Where the cache lines of the blocks are before the copy.
enum class Level { l1, l2, l3, memory };
inline constexpr std::size_t directions = 2, spacings = 2, levels = 4;
const char* direction_name(Direction direction);
const char* spacing_name(Spacing spacing);

/// The measured blocks: their bytes, and the distance from one to the next, in blocks.
inline constexpr std::array<std::uint32_t, 13> block_lengths = {1,   2,   4,   8,    16,   32,  64,
                                                                128, 256, 512, 1024, 2048, 4096};
inline constexpr std::array<std::uint32_t, 4> block_steps = {2, 4, 16, 128};

struct BlockCosts {
  using Row = std::array<std::uint32_t, levels>;
  using Table = std::array<std::array<Row, block_steps.size()>, block_lengths.size()>;
  /// Picoseconds for one block in a copy of many, by Direction, Spacing, block_lengths, block_steps and Level; 0: not measured.
  std::array<std::array<Table, spacings>, directions> block{};
  /// Picoseconds by which `few_blocks` blocks in memory take longer than that, by Direction: a processor waits for the first line
  /// that it loads, but stores into lines that it does not yet have without waiting. 0: not measured.
  std::array<std::int32_t, directions> first{};
  std::uint32_t call = 0;                         ///< picoseconds; 0: not measured
  std::array<std::uint32_t, levels - 1> caches{}; ///< bytes; 0: unknown
  /// Whether everything was measured.
  bool complete() const;
  bool operator==(const BlockCosts&) const = default;
};
inline constexpr std::uint64_t few_blocks = 16;
/// The entry of `block` with which few_blocks are compared: equally far apart, 64 bytes of every 256.
inline constexpr std::size_t few_length = 6, few_step = 1;
static_assert(block_lengths[few_length] == 64 && block_steps[few_step] == 4);

/// Blocks of one length.
struct Blocks {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0; ///< of each block
  double step = 0; ///< mean bytes from the beginning of one block to that of the next, in either direction
  Spacing spacing = Spacing::equal;
};
/// The bytes in the cache lines that contain the blocks.
double touched_bytes(const Blocks& blocks);

/// The parts of a copy's time, in nanoseconds.
struct CopyTerms {
  double start = 0;     ///< the call
  double addresses = 0; ///< finding and moving each block, with all lines in the first-level cache
  double memory = 0;    ///< extra time because the lines are elsewhere
  double total() const { return start + addresses + memory; }
};
/// What was done with the blocks before: hot ones were used last, and are in the smallest cache that holds them all; cold ones are
/// in memory. The consecutive bytes are hot.
enum class Before { hot, cold };
/// Predicts the time to gather or scatter all these blocks in one call. The costs must be complete().
/// `sharers`: the number of processes that use as much of the last-level cache.
CopyTerms predict_copy(const BlockCosts& costs, Direction direction, std::span<const Blocks> all,
                       Before before, unsigned sharers = 1);

} // namespace near::profile
