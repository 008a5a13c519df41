// What a process has learnt of large messages from and to each other process: it alone writes, tools read. In
// its region behind the packets, not reserved: only the pages of pairs that talk exist.
#pragma once

#include "base/atomic.h"

#include <algorithm>
#include <cstdint>

namespace near::segment {

/// The protocols of a message above the eager limit. Order: which is tried first while nothing is known.
enum class Protocol : std::uint8_t { direct, pipelined, cma, count };
inline constexpr int protocols = static_cast<int>(Protocol::count);
const char* protocol_name(Protocol protocol);

/// Classes of sizes: class 0 is less than 8 KiB, each further one twice as much.
inline constexpr int size_classes = 16;

/// What a statistic rests on, the weakest first.
enum class Basis : std::uint32_t { none, built_in, profile, measured, named };
/// "built in", "profile", "measured"; of Basis::named, a protocol that the user chose, the knob.
const char* basis_name(Basis basis);

/// Large messages of one class of sizes from the other process to the owner.
struct ProtocolStatistics {
  base::Atomic<std::uint32_t> messages;
  base::Atomic<std::uint32_t> present; ///< the Protocol in use; Protocol::count: none yet
  // Of each protocol that was possible:
  base::Atomic<std::uint32_t> cost[protocols];  ///< nanoseconds a MiB, smoothed; 0: not known
  base::Atomic<std::uint32_t> basis[protocols]; ///< Basis of that statistic
};

/// A cost in nanoseconds a KiB as statistics hold it, a MiB; the largest one stands for all beyond.
inline std::uint32_t statistic_of(float cost) {
  return static_cast<std::uint32_t>(std::min(static_cast<double>(cost) * 1024, double{UINT32_MAX}));
}

/// One row a process of the job.
struct alignas(64) PairStatistics {
  ProtocolStatistics from_it[size_classes];
  // The owner's copies into packets for it: nanoseconds a MiB with cached and with streaming stores; 0: not
  // known.
  base::Atomic<std::uint32_t> store_cost[2];
  base::Atomic<std::uint32_t> streaming; ///< 1: those are in use
};

} // namespace near::segment
