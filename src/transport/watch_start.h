// Begins to watch the other processes of the job, using the segment, which the layers above do not see.
#pragma once

#include "boot/watch.h"

namespace near::transport {

/// Calls boot::begin_watch() with the segment of this process.
base::Result begin_watch(const boot::Start& start, std::span<const boot::Neighbour> next,
                         std::uint32_t patience);

} // namespace near::transport
