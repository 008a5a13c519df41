// Clocks.
#pragma once

#include <cstdint>
#include <string>

namespace near::os {

/// Their lengths in nanoseconds.
inline constexpr std::uint64_t millisecond_ns = 1'000'000, second_ns = 1'000'000'000;

/// CLOCK_MONOTONIC in nanoseconds.
std::uint64_t monotonic_ns();

/// The processor time used by all threads of process `pid`, in nanoseconds; 0 if the process has ended, or is in another namespace.
std::uint64_t process_cpu_ns(std::int32_t pid);

/// The local time, as "2026-11-22 07:59:30.123".
std::string time_text();

} // namespace near::os
