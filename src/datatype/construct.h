// Shared by the constructors: from a layout to a datatype with a handle.
#pragma once

#include "datatype/datatype.h"

#include <new>
#include <stdexcept>

namespace near::datatype {

/// Sets the members that follow from the layout and control how
/// elements are copied: `contiguous`, `grid` and its functions.
void plan_copies(Datatype& type);
/// Makes a new, uncommitted datatype with this layout.
Result adopt(Layout layout, Datatype*& made);

/// Runs `build(Layout&)` and adopts the result. Fails with MPI_ERR_NO_MEM if memory runs out on the way.
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
