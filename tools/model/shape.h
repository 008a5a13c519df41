// What the model of packing needs to know about a datatype: its blocks (profile/blocks.h).
#pragma once

#include "datatype/datatype.h"
#include "profile/blocks.h"

#include <vector>

namespace near::model {

using base::Result;

/// The blocks of a buffer of `count` elements. Blocks with the same length, spacing and order of magnitude of distance are
/// combined. The time is linear in the entries of the datatype, however often they are repeated.
std::vector<profile::Blocks> blocks_of(const datatype::Datatype& type, MPI_Count count);

/// The number of elements that hold at least `bytes` bytes; one if that is 0. Fails if the type has no bytes, or if the sizes or
/// displacements of that many elements do not fit in 63 bits.
Result elements_for(datatype::Datatype& type, std::uint64_t bytes, MPI_Count& count);

} // namespace near::model
