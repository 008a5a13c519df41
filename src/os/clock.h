// Clocks.
#pragma once

#include <cstdint>
#include <string>

namespace near::os {

/// CLOCK_MONOTONIC in nanoseconds.
std::uint64_t monotonic_ns();

/// The local time of day, as "2026-11-22 07:59:30.123".
std::string time_text();

} // namespace near::os
