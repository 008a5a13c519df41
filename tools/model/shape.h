// What the model of packing asks of a datatype: its blocks (profile/blocks.h).
#pragma once

#include "datatype/datatype.h"
#include "profile/blocks.h"

#include <vector>

namespace near::model {

/// The blocks of the buffer, whose address does not matter: those of one length and spacing together. The time is linear in the
/// entries of the datatype, not in its blocks.
std::vector<profile::Blocks> blocks_of(const datatype::Buffer& buffer);

} // namespace near::model
