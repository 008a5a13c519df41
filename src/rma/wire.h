// Messages by which a process has others carry out one-sided operations on their memory. They are p2p messages on the
// window's own communicator. So they arrive in order, with p2p's flow control, and end with an error if the peer fails.
//
//   origin                                     target (its Server, server.h)
//   CallHead, runs, data  ------------------>  carries out the calls of each origin in order
//                         <------------------  data, or an Answer; a put or an accumulate has no answer
//   CallHead (flush)      ------------------>
//                         <------------------  Answer: all calls before it are complete
#pragma once

#include "object/object.h"
#include "rma/runs.h"

#include <cstdint>

namespace near::rma {

enum class Call : std::uint8_t {
  put,        ///< data: the new bytes
  get,        ///< answered with the bytes
  accumulate, ///< data: the operands, unless the operation is no_op; if it fetches, answered with the old bytes
  compare_and_swap, ///< data: the new element and the comparand; answered with the old element
  check,            ///< answered: whether all of the memory is part of the window
  flush,            ///< answered when the calls before it are complete: whether one failed
  lock_shared,      ///< answered when the lock is held
  lock_exclusive,
  try_shared, ///< answered at once: whether the lock is held
  unlock_shared,
  unlock_exclusive,
};

/// The beginning of every call. It is followed by `runs` runs, then the data.
struct CallHead {
  Call call = Call::put;
  bool fetches = false;             ///< for an accumulate: its origin wants the old bytes
  std::uint32_t answer_tag = 0;     ///< of the answer
  std::uint64_t runs = 0;           ///< how many
  std::uint64_t bytes = 0;          ///< of the target's memory
  object::HandleBits operation = 0; ///< predefined operation of an accumulate
  object::HandleBits element =
      0; ///< its predefined datatype; 0: there are several, and the bytes are only moved
};
static_assert(sizeof(CallHead) == 32, "the data are aligned as in memory of their own");

/// Answers without data. A data answer shorter than requested means that the memory is out of range.
struct Answer {
  std::int32_t error = 0; ///< error class
  std::int32_t granted = 0;
};

/// Tags on the user channel of the window's communicator, which carries nothing else.
inline constexpr int call_tag = 0, first_answer_tag = 1, last_answer_tag = 0x3fffffff;

} // namespace near::rma
