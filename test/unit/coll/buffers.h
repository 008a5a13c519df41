// Buffers of test values in several layouts that have one type signature: a "cell" is two ints.
//   plain    2 ints, contiguous
//   gaps     ints at -4 and 8 of each cell, 24 bytes apart: a negative lower bound and holes
//   split    two MPI_INT elements a cell: another count for the same signature
#pragma once

#include "coll/call.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace near::coll::test {

using datatype::Buffer;
using datatype::Datatype;

enum class Layout { plain, gaps, split };
inline constexpr Layout layouts[] = {Layout::plain, Layout::gaps, Layout::split};

struct Cell {
  std::int32_t a = 0, b = 0;
  bool operator==(const Cell&) const = default;
};

/// A value that identifies its call, rank and index.
inline Cell cell(int call, int rank, MPI_Count index) {
  return {static_cast<std::int32_t>(call * 131 + rank * 7919 + 1),
          static_cast<std::int32_t>(index * 31 + rank)};
}

/// The committed type of one cell; null until make_types().
Datatype& type_of(Layout layout);
void make_types();
/// Converts a number of cells to a number of elements.
inline MPI_Count elements(Layout layout, MPI_Count cells) {
  return layout == Layout::split ? 2 * cells : cells;
}

/// Space for cells, surrounded by and interspersed with bytes that must keep their value.
class TestBuffer {
public:
  TestBuffer(Layout layout, MPI_Count cells)
      : layout_(layout), cells_(cells), bytes_(static_cast<std::size_t>(cells) * stride() + 2 * guard, 0xa5) {
  }
  void* address() { return bytes_.data() + guard; }
  Layout layout() const { return layout_; }
  Datatype& type() const { return type_of(layout_); }
  /// `cells` cells, beginning at cell `first`.
  Buffer argument(MPI_Count first, MPI_Count cells) {
    return Buffer{bytes_.data() + guard + static_cast<std::size_t>(first) * stride(),
                  elements(layout_, cells), &type_of(layout_)};
  }
  Buffer argument() { return argument(0, cells_); }
  void set(MPI_Count at, Cell value) {
    std::memcpy(place(at, true), &value.a, 4);
    std::memcpy(place(at, false), &value.b, 4);
  }
  Cell get(MPI_Count at) {
    Cell value;
    std::memcpy(&value.a, place(at, true), 4);
    std::memcpy(&value.b, place(at, false), 4);
    return value;
  }
  /// Returns whether all bytes outside the cells are unchanged.
  bool holes_untouched() {
    std::vector<std::uint8_t> copy = bytes_;
    for (MPI_Count i = 0; i < cells_; ++i) set(i, Cell{-1515870811, -1515870811}); // 0xa5a5a5a5
    bool untouched = true;
    for (auto byte : bytes_) untouched = untouched && byte == 0xa5;
    bytes_ = copy;
    return untouched;
  }

private:
  static constexpr std::size_t guard = 64;
  std::size_t stride() const { return layout_ == Layout::gaps ? 24 : 8; }
  std::uint8_t* place(MPI_Count at, bool first) {
    std::ptrdiff_t offset = layout_ == Layout::gaps ? (first ? -4 : 8) : (first ? 0 : 4);
    return bytes_.data() + guard + static_cast<std::size_t>(at) * stride() + offset;
  }
  Layout layout_;
  MPI_Count cells_;
  std::vector<std::uint8_t> bytes_;
};

/// Count and displacement arrays of a buffer with a hole of one cell before each block, the last block
/// first.
struct Plan {
  std::vector<int> counts, displacements;
  std::vector<MPI_Count> first; ///< cells
  MPI_Count cells = 0;
  Plan(int blocks, Layout layout, const std::function<MPI_Count(int)>& cells_of, bool bytes = false)
      : counts(static_cast<std::size_t>(blocks)), displacements(counts.size()), first(counts.size()) {
    for (int block = blocks; block-- > 0;) {
      auto at = static_cast<std::size_t>(block);
      first[at] = ++cells;
      cells += cells_of(block);
      counts[at] = static_cast<int>(elements(layout, cells_of(block)));
      displacements[at] = static_cast<int>(bytes ? first[at] * (layout == Layout::gaps ? 24 : 8)
                                                 : elements(layout, first[at]));
    }
    ++cells;
  }
  Blocks blocks(TestBuffer& buffer) const {
    Blocks made;
    made.address = buffer.address();
    made.counts = Counts(counts.data());
    made.displacements = Counts(displacements.data());
    made.type = &buffer.type();
    return made;
  }
};

} // namespace near::coll::test
