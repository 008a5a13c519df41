// Subarrays and distributed arrays: a run of pieces per dimension, from the fastest dimension to the slowest.
// Source: MPI 5.0, sections 5.1.3 and 5.1.4.
#include "datatype/construct.h"

#include <vector>

namespace near::datatype {
namespace {

Result check_order(int order) {
  if (order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN) return {};
  return base::fail(MPI_ERR_ARG, "order {} is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
}

/// Indices of the dimensions, fastest first.
std::vector<std::size_t> fastest_first(std::size_t dimensions, int order) {
  std::vector<std::size_t> sequence;
  sequence.reserve(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i)
    sequence.push_back(order == MPI_ORDER_FORTRAN ? i : dimensions - 1 - i);
  return sequence;
}

/// Multiplies pace by factor. Every distance inside a global array
/// fits, because the array's size is checked with it.
Result widen(MPI_Count& pace, MPI_Count factor) {
  if (!__builtin_mul_overflow(pace, factor, &pace)) return {};
  return base::fail(MPI_ERR_ARG, "the whole array is longer than 2^63 - 1 bytes");
}

/// Shifts the layout by `count * pace` bytes.
Result shift(Layout& layout, MPI_Count count, MPI_Count pace) {
  MPI_Count at;
  if (__builtin_mul_overflow(count, pace, &at))
    return base::fail(MPI_ERR_ARG, "the whole array is longer than 2^63 - 1 bytes");
  return move(layout, at);
}

/// One process's part of one dimension.
struct Share {
  MPI_Count start = 0;      ///< its first index
  MPI_Count block = 0;      ///< indices in a whole block
  MPI_Count blocks = 0;     ///< whole blocks
  MPI_Count distance = 0;   ///< indices from block to block
  MPI_Count last_block = 0; ///< indices in the partial block after the whole ones
};

Result share_of(std::size_t dimension, MPI_Count size, int distribution, int argument, int processes,
                int coordinate, Share& share) {
  auto wrong = [dimension](const char* why) {
    return base::fail(MPI_ERR_ARG, "dimension {}: {}", dimension, why);
  };
  if (distribution == MPI_DISTRIBUTE_NONE) {
    if (processes != 1) return wrong("MPI_DISTRIBUTE_NONE needs a process grid of size 1 there");
    share = {0, size, 1, 0, 0};
    return {};
  }
  MPI_Count block = argument;
  if (distribution == MPI_DISTRIBUTE_BLOCK) {
    if (argument == MPI_DISTRIBUTE_DFLT_DARG) block = size / processes + (size % processes != 0);
    if (block <= 0) return wrong("the distribution argument must be positive");
    if (Int128{block} * processes < size)
      return wrong("the distribution argument times the processes is less than the global size");
    Int128 start = Int128{block} * coordinate;
    if (start >= size) return {};
    share.start = static_cast<MPI_Count>(start);
    share.block = std::min<MPI_Count>(block, size - share.start);
    share.blocks = 1;
    return {};
  }
  if (distribution != MPI_DISTRIBUTE_CYCLIC)
    return wrong("the distribution is none of MPI_DISTRIBUTE_BLOCK, _CYCLIC and _NONE");
  if (argument == MPI_DISTRIBUTE_DFLT_DARG) block = 1;
  if (block <= 0) return wrong("the distribution argument must be positive");
  Int128 start = Int128{block} * coordinate, round = Int128{block} * processes;
  if (start >= size) return {};
  share.start = static_cast<MPI_Count>(start);
  share.block = block;
  share.distance = static_cast<MPI_Count>(round);
  MPI_Count from_start = size - share.start;
  share.blocks = from_start / share.distance;
  MPI_Count rest = from_start - share.blocks * share.distance;
  if (rest >= block)
    ++share.blocks;
  else
    share.last_block = rest;
  return {};
}

/// Repeats `layout` along one dimension whose neighbours are `pace` bytes apart.
Result spread(Layout& layout, const Share& share, MPI_Count pace) {
  Layout block;
  NEAR_TRY(copies(layout, share.block, pace, block));
  if (share.blocks == 1 && share.last_block == 0) {
    layout = std::move(block);
    return shift(layout, share.start, pace);
  }
  Layout whole, last, all;
  NEAR_TRY(copies(block, share.blocks, Int128{share.distance} * pace, whole));
  NEAR_TRY(copies(layout, share.last_block, pace, last));
  MPI_Count behind;
  if (__builtin_mul_overflow(share.blocks * share.distance, pace, &behind))
    return base::fail(MPI_ERR_ARG, "the whole array is longer than 2^63 - 1 bytes");
  Member members[] = {{&whole, 0, share.blocks != 0 ? 1 : 0}, {&last, behind, share.last_block != 0 ? 1 : 0}};
  NEAR_TRY(join(members, false, all));
  NEAR_TRY(shift(all, share.start, pace));
  layout = std::move(all);
  return {};
}

} // namespace

Result make_subarray(std::span<const MPI_Count> sizes, std::span<const MPI_Count> subsizes,
                     std::span<const MPI_Count> starts, int order, Datatype& old, Datatype*& made) {
  return construct(made, [&](Layout& layout) -> Result {
    NEAR_TRY(check_order(order));
    if (sizes.empty()) return base::fail(MPI_ERR_ARG, "a subarray needs at least one dimension");
    layout = old;
    MPI_Count pace = old.extent;
    for (std::size_t i : fastest_first(sizes.size(), order)) {
      if (sizes[i] < 1 || subsizes[i] < 1 || subsizes[i] > sizes[i] || starts[i] < 0 ||
          starts[i] > sizes[i] - subsizes[i])
        return base::fail(MPI_ERR_ARG, "dimension {}: {} elements from {} on do not lie in an array of {}", i,
                          subsizes[i], starts[i], sizes[i]);
      Share share{starts[i], subsizes[i], 1, 0, 0};
      NEAR_TRY(spread(layout, share, pace));
      NEAR_TRY(widen(pace, sizes[i]));
    }
    return mark(layout, 0, pace);
  });
}

Result make_darray(int size, int rank, std::span<const MPI_Count> global_sizes,
                   std::span<const int> distributions, std::span<const int> arguments,
                   std::span<const int> process_sizes, int order, Datatype& old, Datatype*& made) {
  return construct(made, [&](Layout& layout) -> Result {
    NEAR_TRY(check_order(order));
    if (global_sizes.empty())
      return base::fail(MPI_ERR_ARG, "a distributed array needs at least one dimension");
    if (size < 1 || rank < 0 || rank >= size)
      return base::fail(MPI_ERR_ARG, "rank {} is not in a process grid of {}", rank, size);
    Int128 processes = 1;
    for (std::size_t i = 0; i < process_sizes.size(); ++i) {
      if (process_sizes[i] < 1 || global_sizes[i] < 1)
        return base::fail(MPI_ERR_ARG, "dimension {}: {} elements over {} processes; both must be positive",
                          i, global_sizes[i], process_sizes[i]);
      processes *= process_sizes[i];
      if (processes > size) break;
    }
    if (processes != size)
      return base::fail(MPI_ERR_ARG, "the process grid's dimensions do not multiply to its size, {}", size);
    // The grid is row-major, whatever the order of the array.
    std::vector<int> coordinates(process_sizes.size());
    int rest = rank;
    for (std::size_t i = process_sizes.size(); i-- > 0;) {
      coordinates[i] = rest % process_sizes[i];
      rest /= process_sizes[i];
    }
    layout = old;
    MPI_Count pace = old.extent;
    for (std::size_t i : fastest_first(global_sizes.size(), order)) {
      Share share;
      NEAR_TRY(share_of(i, global_sizes[i], distributions[i], arguments[i], process_sizes[i], coordinates[i],
                        share));
      NEAR_TRY(spread(layout, share, pace));
      NEAR_TRY(widen(pace, global_sizes[i]));
    }
    return mark(layout, 0, pace);
  });
}

} // namespace near::datatype
