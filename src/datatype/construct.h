// What the constructors share: from a layout to a datatype with a handle.
#pragma once

#include "datatype/datatype.h"

#include <new>
#include <stdexcept>

namespace near::datatype {

/// Sets what the layout says of how elements are copied: `contiguous`, `grid` and its functions.
void plan_copies(Datatype& type);
/// A new, uncommitted datatype with this layout.
Result adopt(Layout layout, Datatype*& made);

/// Runs `build(Layout&)` and adopts what it made; memory that runs out on the way is MPI_ERR_NO_MEM.
template <class F>
Result construct(Datatype*& made, F build) {
  try {
    Layout layout;
    NEAR_TRY(build(layout));
    return adopt(std::move(layout), made);
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {}
  return base::fail(MPI_ERR_NO_MEM, "no memory is left to describe the new datatype");
}

} // namespace near::datatype
