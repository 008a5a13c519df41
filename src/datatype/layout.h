// A layout: the type map without a handle. Constructors are arithmetic on layouts.
// Source: MPI 5.0, sections 5.1.6 to 5.1.8 (bounds), 5.1.7 (resizing).
//
//   ub          = lb + extent
//   typemap     is empty when size == 0 and no marks are set: such a layout has no bounds
//   marked      lb and ub were set by resizing, here or inside. Bounds of a struct are those of its members,
//               marked or not (doc/adr/0003)
//   true bounds from the first byte of data to the end of the last one; marks do not count
#pragma once

#include "base/result.h"
#include "datatype/normal_form.h"
#include "datatype/scalar.h"
#include "datatype/signature.h"

#include <span>

namespace near::datatype {

using base::Result;

struct Layout {
  MPI_Count size = 0; ///< bytes of data in one element
  MPI_Count lb = 0, extent = 0;
  MPI_Count true_lb = 0, true_extent = 0;
  MPI_Count alignment = 1; ///< the strictest alignment of its basic types
  bool marked = false;
  PlacedForm form;
  SignaturePointer signature;         ///< null when size == 0
  struct Datatype* element = nullptr; ///< the only predefined type that this consists of, or nullptr (mixed)
  MPI_Count element_count = 0;        ///< basic types in one element, for MPI_Get_elements
  bool empty() const { return size == 0 && !marked; }
  MPI_Count ub() const { return lb + extent; }
};

/// Sums up the bounds and the size of a new type in 128 bits, and checks that they fit in 63.
class BoundsSum {
public:
  /// Adds `count` copies, `stride` bytes apart, starting at `at`.
  void add(const Layout& layout, Int128 at, Int128 count, Int128 stride);
  /// Adds `count` copies, of which the lowest lies at `first` and the highest at `last`.
  void add_between(const Layout& layout, Int128 first, Int128 last, Int128 count);
  /// Writes size, bounds and true bounds, rounding the extent up to `unit`.
  Result finish(Layout& made, MPI_Count unit = 1) const;

private:
  Int128 size_ = 0, low_ = 0, high_ = 0, true_low_ = 0, true_high_ = 0;
  bool any_ = false, any_data_ = false, overflow_ = false;
};

/// Makes the layout of `count` copies, `stride` bytes apart (any stride if count < 2).
Result copies(const Layout& old, MPI_Count count, Int128 stride, Layout& made);
/// Runs of `old`: block_length(i) copies, one extent apart, starting at at(i).
struct Run {
  MPI_Count at, count;
};
Result runs(const Layout& old, std::span<const Run> all, Layout& made);
/// Members one after another in the type map, each shifted by its displacement. With `padded`, the extent is
/// rounded up to the alignment, as in a C struct.
struct Member {
  const Layout* layout;
  MPI_Count at, count;
};
Result join(std::span<const Member> members, bool padded, Layout& made);
/// Shifts a layout by `by` bytes.
Result move(Layout& layout, MPI_Count by);
/// Resizes: sets lb and extent, and marks them as set.
Result mark(Layout& layout, MPI_Count lb, MPI_Count extent);

/// Whether n elements form one block of n * size bytes.
inline bool is_contiguous(const Layout& layout) {
  return layout.form.form && layout.form.form->kind == NormalForm::Kind::block &&
         layout.extent == layout.size;
}

} // namespace near::datatype
