// What a process has learnt about large messages from and to each other process. Only this process writes,
// tools read. It is in the process's region after the packets, and not reserved: only the pages of pairs that
// talk exist.
#pragma once

#include "base/atomic.h"

#include <algorithm>
#include <cstdint>

namespace near::segment {

/// The protocols for messages above the eager limit, in the order in which they are tried while nothing is
/// known.
enum class Protocol : std::uint8_t { direct, pipelined, cma, count };
inline constexpr int protocols = static_cast<int>(Protocol::count);
const char* protocol_name(Protocol protocol);

/// Size classes: class 0 is below 8 KiB; each further class is twice as large.
inline constexpr int size_classes = 16;

/// What a statistic is based on, the weakest basis first.
enum class Basis : std::uint32_t {
  none,
  built_in,
  profile,
  other_size, ///< measured with messages of another size
  measured,
  named
};
/// The name of a basis: "built in", "profile", "measured at another size" or "measured"; for Basis::named (the user chose
/// the protocol), the name of the knob.
const char* basis_name(Basis basis);

/// Large messages of one size class from the other process to the owner, either without or with gaps.
struct ProtocolStatistics {
  base::Atomic<std::uint32_t> messages;
  base::Atomic<std::uint32_t> present; ///< the Protocol in use; Protocol::count if none yet
  // For each protocol that was possible:
  base::Atomic<std::uint32_t> cost[protocols];  ///< nanoseconds per MiB, smoothed; 0 if unknown
  base::Atomic<std::uint32_t> basis[protocols]; ///< Basis of that statistic
};

/// Converts a cost in nanoseconds per KiB to the statistics' nanoseconds per MiB, saturating.
inline std::uint32_t statistic_of(float cost) {
  return static_cast<std::uint32_t>(std::min(static_cast<double>(cost) * 1024, double{UINT32_MAX}));
}

/// One row for each process of the job.
struct alignas(64) PairStatistics {
  ProtocolStatistics from_it[size_classes];
  ProtocolStatistics with_gaps[size_classes]; ///< of messages from it whose data has gaps at either end
  // The owner's copies into packets for that process: nanoseconds per MiB with cached and with streaming
  // stores; 0 if unknown.
  base::Atomic<std::uint32_t> store_cost[2];
  base::Atomic<std::uint32_t> streaming; ///< 1 if streaming stores are in use
};

} // namespace near::segment
