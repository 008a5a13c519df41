// Walking a normal form: visits the blocks of any range of packed bytes, in packed order.
//
// The walk to the first byte costs one division per loop and one binary search per list on the way down. After that every step is a
// block, or many blocks of equal length at once, and only runs need a division. Addresses are integers, since MPI_BOTTOM is a null
// pointer with offsets.
//
// A sink has the following functions. Each receives what comes next in packed order, and returns false to stop.
//   bool block(std::intptr_t address, MPI_Count bytes)
//   bool grid(std::intptr_t address, const copy::Grid& grid)
//   bool listed(std::intptr_t address, MPI_Count bytes, const CompactNumbers& offsets, std::size_t first, std::size_t count)
//     blocks of `bytes` bytes at `address` + offsets[first], and as many after it as `count` says
// A sink may also have the following. Without them it receives the blocks one by one, or element by element.
//   bool unequal(std::intptr_t address, copy::Blocks blocks)
//   bool repeated(std::intptr_t address, copy::Blocks blocks, const copy::Repeats& repeats)
#pragma once

#include "copy/strided.h"
#include "datatype/normal_form.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace near::datatype {

/// The base of a sink that receives everything block by block.
template <class Sink>
struct BlockByBlock {
  bool grid(std::intptr_t address, const copy::Grid& grid) {
    for (std::size_t row = 0; row < grid.rows; ++row, address += grid.row_stride)
      for (std::size_t i = 0; i < grid.count; ++i)
        if (!static_cast<Sink*>(this)->block(address + static_cast<std::ptrdiff_t>(i) * grid.stride,
                                             static_cast<MPI_Count>(grid.bytes)))
          return false;
    return true;
  }
  bool listed(std::intptr_t address, MPI_Count bytes, const CompactNumbers& offsets, std::size_t first,
              std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i)
      if (!static_cast<Sink*>(this)->block(address + offsets[i], bytes)) return false;
    return true;
  }
};

template <class Sink>
bool walk(const NormalForm& form, std::intptr_t at, MPI_Count skip, MPI_Count take, Sink& sink);

/// `count` copies of a block.
inline copy::Grid row_of(const NormalForm& block, MPI_Count count, MPI_Count stride) {
  return {.bytes = static_cast<std::size_t>(block.size),
          .count = static_cast<std::size_t>(count),
          .stride = stride,
          .rows = 1,
          .row_stride = 0};
}
/// The form as a grid, if it is one; grid.bytes is 0 if not.
inline copy::Grid grid_of(const NormalForm& form) {
  using Kind = NormalForm::Kind;
  if (form.kind == Kind::block) return row_of(form, 1, 0);
  if (form.kind != Kind::loop) return {};
  const NormalForm& child = *form.child;
  if (child.kind == Kind::block) return row_of(child, form.count, form.stride);
  if (child.kind != Kind::loop || child.child->kind != Kind::block) return {};
  copy::Grid grid = row_of(*child.child, child.count, child.stride);
  grid.rows = static_cast<std::size_t>(form.count);
  grid.row_stride = form.stride;
  return grid;
}
/// Blocks [first, first + count) of the node.
inline copy::Blocks blocks_of(const FormEntries& entries, std::size_t first, std::size_t count) {
  return {entries.positions().narrow() + first, entries.starts().narrow() + first, count};
}
/// The form as a grid or as one list of blocks whose numbers fit in 32 bits; grid.count is 0 if it is neither.
inline copy::Grid grid_or_list_of(const NormalForm& form) {
  using Kind = NormalForm::Kind;
  if (form.kind == Kind::equal && form.entries.positions().is_narrow())
    return {.bytes = static_cast<std::size_t>(form.child->size),
            .count = form.entries.size(),
            .at = form.entries.positions().narrow()};
  if (form.kind == Kind::blocks && form.entries.is_narrow()) {
    const copy::Blocks blocks = blocks_of(form.entries, 0, form.entries.size() - 1);
    return {.count = blocks.count, .at = blocks.at, .start = blocks.start};
  }
  return grid_of(form);
}
/// Turns a grid of one row or one block into that of `count` copies,
/// `stride` bytes apart. Returns false if it has several rows, or is a list.
inline bool repeat_grid(copy::Grid& grid, MPI_Count count, MPI_Count stride) {
  if (grid.bytes == 0 || grid.rows != 1 || grid.at != nullptr) return false;
  if (grid.count == 1) {
    grid.count = static_cast<std::size_t>(count);
    grid.stride = stride;
  } else {
    grid.rows = static_cast<std::size_t>(count);
    grid.row_stride = stride;
  }
  return true;
}

/// Packed bytes [skip, skip + take) of `equal` blocks.
template <class Sink>
bool walk_equal(const NormalForm& form, std::intptr_t at, MPI_Count skip, MPI_Count take, Sink& sink) {
  const CompactNumbers& positions = form.entries.positions();
  const MPI_Count unit = form.child->size;
  MPI_Count index = 0;
  if (skip != 0) {
    index = skip / unit;
    if (const MPI_Count within = skip - index * unit; within != 0) {
      const MPI_Count part = std::min(unit - within, take);
      if (!sink.block(at + positions[static_cast<std::size_t>(index)] + within, part)) return false;
      take -= part;
      ++index;
    }
  }
  const MPI_Count whole = take == form.size ? form.count : take / unit, rest = take - whole * unit;
  if (whole != 0 &&
      !sink.listed(at, unit, positions, static_cast<std::size_t>(index), static_cast<std::size_t>(whole)))
    return false;
  return rest == 0 || sink.block(at + positions[static_cast<std::size_t>(index + whole)], rest);
}

template <class Sink>
concept TakesBlocks = requires(Sink& sink, copy::Blocks blocks, const copy::Repeats& repeats) {
  sink.unequal(std::intptr_t(), blocks);
  sink.repeated(std::intptr_t(), blocks, repeats);
};

/// Whether copies `stride` bytes apart lie in disjoint ranges of memory, so that the order of writing does not matter.
inline bool lie_apart(copy::Blocks blocks, MPI_Count stride) {
  MPI_Count low = 0, high = 0;
  for (std::size_t i = 0; i < blocks.count; ++i) {
    low = std::min<MPI_Count>(low, blocks.at[i]);
    high = std::max<MPI_Count>(high, MPI_Count{blocks.at[i]} + blocks.start[i + 1] - blocks.start[i]);
  }
  return stride >= high - low || stride <= low - high;
}
/// Visits whole copies of a node that has few blocks, to be copied
/// column by column. For any other node, does nothing and returns false.
template <class Sink>
bool walk_few(const NormalForm& child, MPI_Count stride, std::intptr_t at, MPI_Count count, Sink& sink,
              bool& more) {
  constexpr std::size_t most = 32;
  using Kind = NormalForm::Kind;
  const FormEntries& entries = child.entries;
  std::int32_t starts[most + 1];
  copy::Blocks blocks{};
  if (child.kind == Kind::blocks && entries.size() <= most + 1 && entries.is_narrow()) {
    blocks = blocks_of(entries, 0, entries.size() - 1);
  } else if (child.kind == Kind::equal && entries.size() <= most && entries.positions().is_narrow() &&
             child.size <= std::numeric_limits<std::int32_t>::max()) {
    for (std::size_t i = 0; i <= entries.size(); ++i)
      starts[i] = static_cast<std::int32_t>(static_cast<MPI_Count>(i) * child.child->size);
    blocks = {entries.positions().narrow(), starts, entries.size()};
  }
  if (blocks.count == 0 || !lie_apart(blocks, stride)) return false;
  more = sink.repeated(at, blocks,
                       {static_cast<std::size_t>(count), stride, static_cast<std::size_t>(child.size)});
  return true;
}

/// Visits `count` whole copies of `child`, the first at `at`, `stride` bytes apart.
template <class Sink>
bool walk_whole(const NormalForm& child, MPI_Count stride, std::intptr_t at, MPI_Count count, Sink& sink) {
  if (count == 0) return true;
  if (copy::Grid grid = grid_of(child); repeat_grid(grid, count, stride)) return sink.grid(at, grid);
  if constexpr (TakesBlocks<Sink>)
    if (bool more; count > 1 && walk_few(child, stride, at, count, sink, more)) return more;
  for (MPI_Count i = 0; i < count; ++i)
    if (!walk(child, at + i * stride, 0, child.size, sink)) return false;
  return true;
}

/// Visits packed bytes [skip, skip + take) of copies of `child`, the first at `at`, `stride` bytes apart.
/// Precondition: take > 0. Returns false if the sink wants no more.
template <class Sink>
bool walk_copies(const NormalForm& child, MPI_Count stride, std::intptr_t at, MPI_Count skip, MPI_Count take,
                 Sink& sink) {
  MPI_Count unit = child.size;
  if (skip != 0) {
    MPI_Count first = skip / unit, within = skip - first * unit;
    at += first * stride;
    if (within != 0) {
      MPI_Count part = std::min(unit - within, take);
      if (!walk(child, at, within, part, sink)) return false;
      take -= part;
      if (take == 0) return true;
      at += stride;
    }
  }
  MPI_Count whole = take / unit, rest = take - whole * unit;
  if (!walk_whole(child, stride, at, whole, sink)) return false;
  return rest == 0 || walk(child, at + whole * stride, 0, rest, sink);
}

/// Visits packed bytes [skip, skip + take) of `blocks`, with the whole blocks among them at once.
template <class Sink>
bool walk_blocks(const NormalForm& form, std::intptr_t at, MPI_Count skip, MPI_Count take, Sink& sink) {
  const FormEntries& entries = form.entries;
  std::size_t i = entries.holding(skip);
  const auto part = [&] {
    const FormEntry entry = entries[i];
    const MPI_Count within = skip - entry.start, bytes = std::min(entries.start(i + 1) - skip, take);
    skip += bytes;
    take -= bytes;
    ++i;
    return sink.block(at + entry.at + within, bytes);
  };
  if (entries.start(i) != skip && !part()) return false;
  if (take == 0) return true;
  const std::size_t last = skip + take == form.size ? entries.size() - 1 : entries.holding(skip + take);
  if (last > i) {
    if (!sink.unequal(at, blocks_of(entries, i, last - i))) return false;
    take -= entries.start(last) - skip;
    skip = entries.start(last);
    i = last;
  }
  return take == 0 || part();
}

/// Visits packed bytes [skip, skip + take) of one form whose origin is at `at`. Precondition: take > 0, skip + take <= form.size.
template <class Sink>
bool walk(const NormalForm& form, std::intptr_t at, MPI_Count skip, MPI_Count take, Sink& sink) {
  using Kind = NormalForm::Kind;
  if (form.kind == Kind::block) return sink.block(at + skip, take);
  if (form.kind == Kind::loop) {
    if (take == form.size) return walk_whole(*form.child, form.stride, at, form.count, sink);
    return walk_copies(*form.child, form.stride, at, skip, take, sink);
  }
  if (form.kind == Kind::equal) return walk_equal(form, at, skip, take, sink);
  if constexpr (TakesBlocks<Sink>)
    if (form.kind == Kind::blocks && form.entries.is_narrow()) return walk_blocks(form, at, skip, take, sink);
  for (std::size_t i = form.entries.holding(skip); take != 0; ++i) {
    const FormEntry entry = form.entries[i];
    MPI_Count within = skip - entry.start;
    MPI_Count part = std::min(form.entries.start(i + 1) - skip, take);
    std::intptr_t origin = at + entry.at;
    bool more = form.kind == Kind::blocks ? sink.block(origin + within, part)
                : form.kind == Kind::runs ? walk_copies(*form.child, form.stride, origin, within, part, sink)
                                          : walk(*form.children[i], origin, within, part, sink);
    if (!more) return false;
    skip += part;
    take -= part;
  }
  return true;
}

} // namespace near::datatype
