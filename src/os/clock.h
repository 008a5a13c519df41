// The clocks.
#pragma once

#include <cstdint>

namespace near::os {

/// CLOCK_MONOTONIC in nanoseconds.
std::uint64_t monotonic_ns();

} // namespace near::os
