// Buffers of test values in several layouts that have one type signature: a "cell" is two ints.
//   plain    2 ints, contiguous
//   gaps     ints at -4 and 8 of each cell, 24 bytes apart: a negative lower bound and holes
//   split    two MPI_INT elements a cell: another count for the same signature
#pragma once

#include "coll/call.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
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

/// Space for cells, surrounded by and interspersed with bytes that must keep their value. What looks at every byte is in buffers.cpp, which
/// is optimised where other tests are not (CMakeLists.txt).
class TestBuffer {
public:
  TestBuffer(Layout layout, MPI_Count cells)
      : layout_(layout), cells_(cells),
        bytes_(static_cast<std::size_t>(cells) * stride() + 2 * guard, untouched) {}
  void* address() { return bytes_.data() + guard; }
  Layout layout() const { return layout_; }
  Datatype& type() const { return type_of(layout_); }
  /// `cells` cells, beginning at cell `first`.
  Buffer argument(MPI_Count first, MPI_Count cells) {
    return Buffer{bytes_.data() + guard + static_cast<std::size_t>(first) * stride(),
                  elements(layout_, cells), &type_of(layout_)};
  }
  Buffer argument() { return argument(0, cells_); }
  void set(MPI_Count at, Cell value);
  Cell get(MPI_Count at) const;
  /// Sets cells to cell(call, rank, 0), cell(call, rank, 1) and so on, beginning at `first`.
  void fill(int call, int rank, MPI_Count first, MPI_Count cells);
  /// The index, counted from `first`, of the first cell that is not as fill() sets it; -1 if all are.
  MPI_Count first_wrong(int call, int rank, MPI_Count first, MPI_Count cells) const;
  /// Returns whether all bytes outside the cells are unchanged.
  bool holes_untouched() const;

private:
  static constexpr std::size_t guard = 64;
  static constexpr std::uint8_t untouched = 0xa5;
  std::size_t stride() const { return layout_ == Layout::gaps ? 24 : 8; }
  /// Where the ints of a cell are, in `bytes_`.
  std::size_t place(MPI_Count at, bool first) const;
  Layout layout_;
  MPI_Count cells_;
  std::vector<std::uint8_t> bytes_;
};

/// Sets terms that tell their rank and position; sums of them do not overflow.
void fill_terms(std::span<std::int64_t> terms, int rank);
/// The index of the first value that is not the sum of the terms of ranks 0 to `last` in its position; -1 if all are. The first value is
/// in position `first`.
std::ptrdiff_t first_wrong_sum(std::span<const std::int64_t> sums, int last, std::size_t first);

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
