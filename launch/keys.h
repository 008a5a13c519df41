// The keys under which the poller reports the supervisor's descriptors.
#pragma once

#include <cstdint>

namespace near::launch {

inline constexpr std::uint64_t key_signals = 1;
inline constexpr std::uint64_t key_front_end = 2;
inline constexpr std::uint64_t key_bell = 3;
inline constexpr std::uint64_t key_mpi_process = 1ull << 32; ///< + rank
inline constexpr std::uint64_t key_streams = 1ull << 40;     ///< + stream

} // namespace near::launch
