// The keys under which the poller reports the descriptors of a supervisor, or of mpiexec in a job on several machines.
#pragma once

#include <cstdint>

namespace near::launch {

inline constexpr std::uint64_t key_signals = 1;
inline constexpr std::uint64_t key_front_end = 2;
inline constexpr std::uint64_t key_bell = 3;
inline constexpr std::uint64_t key_control = 4;
inline constexpr std::uint64_t key_table = 1ull << 24;        ///< + row
inline constexpr std::uint64_t key_agents = 2ull << 24;       ///< + machine
inline constexpr std::uint64_t key_agent_errors = 3ull << 24; ///< + machine
inline constexpr std::uint64_t key_agent_input = 4ull << 24;  ///< + machine
inline constexpr std::uint64_t key_mpi_process = 1ull << 32;  ///< + rank
inline constexpr std::uint64_t key_streams = 1ull << 40;      ///< + stream

} // namespace near::launch
