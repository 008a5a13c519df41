// Datatypes that are written as text, for the command line of `near model`.
//
//   vector(1000, 1, 16, double)            count, block length and stride in elements
//   hvector(1000, 1, 128, double)          ... stride in bytes
//   contiguous(3, float)
//   indexed([2, 1], [0, 5], int)           block lengths and displacements in elements
//   indexed_block(1, [0, 3, 4], double)    block length and displacements
//   subarray([64, 64], [64, 1], [0, 0], double)   sizes, parts, starts; the last dimension is contiguous
//   resized(0, 16, float)                  lower bound and extent in bytes
//
// Types nest. Names are those of C (double, int, char, ...), or of the standard (MPI_DOUBLE).
#pragma once

#include "datatype/datatype.h"

#include <string_view>

namespace near::model {

using base::Result;

/// Makes the datatype, committed, with one reference for the caller. The text of a failure says where the description is wrong.
Result parse_type(std::string_view text, datatype::Datatype*& made);

} // namespace near::model
