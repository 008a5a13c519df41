// The memory in which a process, the origin, hands short calls to the target of a window, whose memory there is private. It lies
// in the origin's region. Either of them carries the calls out (queue/call_turn.h): handed_calls.h is the origin's side,
// ring_server.h the target's.
//
//   turn | next | calls: number, what to do, up to 24 bytes of data | data of longer calls
//
// The data of a call are its operands, which the origin writes, and behind them what the target's memory contained before.
#pragma once

#include "object/object.h"
#include "queue/call_turn.h"
#include "segment/segment.h"

#include <cstddef>
#include <cstdint>

namespace near::rma {

enum class HandedKind : std::uint8_t { put, get, accumulate, compare_and_swap };

/// A call, in one cache line.
struct alignas(64) HandedCall {
  static constexpr std::uint32_t short_bytes = 24;
  static constexpr std::uint32_t here = ~0u;

  queue::SequenceFlag<> number;                  ///< of the call that lies here
  std::uint64_t address = 0;                     ///< of the memory, in the target's address space
  std::uint32_t bytes = 0;                       ///< of the memory, which has no gaps
  std::uint32_t at = here;                       ///< where the data are in CallRing::data, or `here`
  object::HandleBits operation = 0, element = 0; ///< of an accumulate: predefined, and without gaps
  HandedKind kind = HandedKind::put;
  std::uint8_t operands = 0; ///< how many of `bytes` bytes there are: 0, 1 or 2
  std::uint8_t fetches = 0;  ///< 1: the origin wants what was there before
  std::uint8_t is_outside =
      0; ///< written by the target: the memory is not in the window, and nothing was done
  alignas(8) std::byte data[short_bytes]{}; ///< if they are short

  std::uint32_t operand_bytes() const { return operands * bytes; }
  std::uint32_t data_bytes() const { return (operands + fetches) * bytes; }
};
static_assert(sizeof(HandedCall) == 64);

struct CallRing {
  static constexpr std::uint32_t most = 32;
  /// Four pages in all.
  static constexpr std::uint32_t data_bytes = (16 << 10) - 2 * 64 - most * sizeof(HandedCall);
  /// Longer calls are not worth a second copy.
  static constexpr std::uint32_t longest = 8192;

  alignas(64) queue::CallTurn<> turn;
  alignas(64) segment::Offset next =
      0; ///< the ring of another origin for the same target; set before it is listed
  HandedCall calls[most];
  alignas(64) std::byte data[data_bytes];

  HandedCall& call(queue::Number number) { return calls[number % most]; }
  std::byte* data_of(HandedCall& call) { return call.at == HandedCall::here ? call.data : data + call.at; }
  /// Where what was there before goes.
  std::byte* before_of(HandedCall& call) { return data_of(call) + call.operand_bytes(); }
};
static_assert(sizeof(CallRing) == 16 << 10);

} // namespace near::rma
