// The memory in which a process, the origin, hands short calls to a target whose window memory is private. It lies in the
// origin's region. Either process may carry the calls out (queue/call_turn.h): handed_calls.h is the origin's side,
// ring_server.h the target's.
//
//   turn | next | calls: number, what to do, up to 24 bytes of data | data of longer calls
//
// The data of a call are its operands, which the origin writes, followed by the previous contents of the target's memory. If that
// memory has gaps, the runs that describe it precede the data.
#pragma once

#include "object/object.h"
#include "queue/call_turn.h"
#include "rma/runs.h"
#include "segment/segment.h"

#include <cstddef>
#include <cstdint>

namespace near::rma {

enum class HandedKind : std::uint8_t { put, get, accumulate, compare_and_swap };

/// A call, in one cache line.
struct alignas(64) HandedCall {
  static constexpr std::uint32_t short_bytes = 24;
  static constexpr std::uint32_t here = ~0u;

  /// The number of the call that this entry holds.
  queue::SequenceFlag<> number;
  /// The memory in the target's address space: its begin, unless it has gaps, and its size.
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  /// Where the data lie in CallRing::data, or `here`.
  std::uint32_t at = here;
  /// For an accumulate; both are predefined. The elements have no gaps.
  object::HandleBits operation = 0, element = 0;
  HandedKind kind = HandedKind::put;
  std::uint8_t operands = 0; ///< number of operands of `bytes` bytes each: 0, 1 or 2
  std::uint8_t fetches = 0;  ///< 1: the origin wants the previous contents
  /// Written by the target: not all of the memory is in the window, and nothing was done.
  std::uint8_t is_outside = 0;
  std::uint16_t runs = 0; ///< how many runs describe the memory; 0: it has no gaps
  alignas(8) std::byte data[short_bytes]{};

  std::uint32_t operand_bytes() const { return operands * bytes; }
  std::uint32_t data_bytes() const { return (operands + fetches) * bytes; }
};
static_assert(sizeof(HandedCall) == 64);

struct CallRing {
  static constexpr std::uint32_t most = 32;
  /// Four pages in all.
  static constexpr std::uint32_t data_bytes = (16 << 10) - 2 * 64 - most * sizeof(HandedCall);
  /// Longer calls are not worth a second copy. At most this many runs describe the memory of a call.
  static constexpr std::uint32_t longest = 8192, most_runs = 64;

  alignas(64) queue::CallTurn<> turn;
  /// The ring of another origin for the same target; set before this one is listed.
  alignas(64) segment::Offset next = 0;
  HandedCall calls[most];
  alignas(64) std::byte data[data_bytes];

  HandedCall& call(queue::Number number) { return calls[number % most]; }
  Run* runs_of(HandedCall& call) { return reinterpret_cast<Run*>(data + call.at); }
  std::byte* data_of(HandedCall& call) {
    return call.at == HandedCall::here ? call.data : data + call.at + call.runs * sizeof(Run);
  }
  /// Where the previous contents are written.
  std::byte* before_of(HandedCall& call) { return data_of(call) + call.operand_bytes(); }
};
static_assert(sizeof(CallRing) == 16 << 10);

/// Carries out an accumulate or compare-and-swap with these operands on `bytes` bytes of memory. The caller holds the element
/// lock. Returns whether the memory has changed.
bool change_elements(const HandedCall& call, const std::byte* operands, std::byte* memory, std::size_t bytes);

} // namespace near::rma
