// Walking a normal form: visits the blocks of any range of packed bytes, in packed order.
//
// A walk to the first byte costs one division per loop and one binary search per list on the way down; after
// that every step is a block, or many blocks at once where they are equally long, without a division but in runs. Addresses are integers, since MPI_BOTTOM is
// a null pointer with offsets.
//
// A sink has the following functions. Each gets what comes next in packed order, and returns false to stop.
//   bool block(std::intptr_t address, MPI_Count bytes)
//   bool grid(std::intptr_t address, const copy::Grid& grid)
//   bool listed(std::intptr_t address, MPI_Count bytes, const CompactNumbers& offsets, std::size_t first, std::size_t count)
//     blocks of `bytes` bytes at `address` + offsets[first], and as many after it as `count` says
#pragma once

#include "copy/strided.h"
#include "datatype/normal_form.h"

#include <algorithm>
#include <cstdint>

namespace near::datatype {

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
/// Makes a grid that has one row, or one block, that of `count` copies, `stride` bytes apart. False if it has more.
inline bool repeat_grid(copy::Grid& grid, MPI_Count count, MPI_Count stride) {
  if (grid.bytes == 0 || grid.rows != 1) return false;
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

/// `count` whole copies of `child`, the first at `at`, `stride` bytes apart.
template <class Sink>
bool walk_whole(const NormalForm& child, MPI_Count stride, std::intptr_t at, MPI_Count count, Sink& sink) {
  if (count == 0) return true;
  if (copy::Grid grid = grid_of(child); repeat_grid(grid, count, stride)) return sink.grid(at, grid);
  for (MPI_Count i = 0; i < count; ++i)
    if (!walk(child, at + i * stride, 0, child.size, sink)) return false;
  return true;
}

/// Packed bytes [skip, skip + take) of copies of `child`, the first at `at`, `stride` bytes apart.
/// Precondition: take > 0. Returns false when the sink wants no more.
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

/// Packed bytes [skip, skip + take) of one form whose origin is at `at`. Precondition: take > 0, skip + take <= form.size.
template <class Sink>
bool walk(const NormalForm& form, std::intptr_t at, MPI_Count skip, MPI_Count take, Sink& sink) {
  using Kind = NormalForm::Kind;
  if (form.kind == Kind::block) return sink.block(at + skip, take);
  if (form.kind == Kind::loop) {
    if (take == form.size) return walk_whole(*form.child, form.stride, at, form.count, sink);
    return walk_copies(*form.child, form.stride, at, skip, take, sink);
  }
  if (form.kind == Kind::equal) return walk_equal(form, at, skip, take, sink);
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
