// Datatypes written as text, for the command line of `near model`.
//
//   vector(1000, 1, 16, double)            count, block length and stride in elements
//   hvector(1000, 1, 128, double)          ... stride in bytes
//   contiguous(3, float)
//   indexed([2, 1], [0, 5], int)           block lengths and displacements in elements
//   indexed_block(1, [0, 3, 4], double)    block length and displacements
//   subarray([64, 64], [64, 1], [0, 0], double)   sizes, parts, starts; the last dimension is contiguous
//   resized(0, 16, float)                  lower bound and extent in bytes
//
// Types can be nested. Basic types have their C names without blanks
// (double, unsigned_char, int64_t), or the standard's names (MPI_DOUBLE).
#pragma once

#include "datatype/datatype.h"

#include <string_view>

namespace near::model {

using base::Result;

/// A reference to a datatype, dropped on destruction.
class HeldType {
public:
  HeldType() = default;
  HeldType(const HeldType&) = delete;
  HeldType& operator=(const HeldType&) = delete;
  ~HeldType() {
    if (type_ != nullptr) datatype::release(type_);
  }
  /// Where a constructor stores the type that it makes.
  datatype::Datatype*& slot() { return type_; }
  datatype::Datatype& operator*() const { return *type_; }
  bool empty() const { return type_ == nullptr; }

private:
  datatype::Datatype* type_ = nullptr;
};

/// Makes the datatype, committed; `made` must be empty. The message of a failure says where the description is wrong.
Result parse_type(std::string_view text, HeldType& made);

} // namespace near::model
