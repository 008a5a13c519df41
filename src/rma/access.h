// The steps that puts, gets and accumulates share. See access.cpp.
#pragma once

#include "rma/runs.h"
#include "rma/state.h"

#include <span>
#include <utility>

namespace near::rma {

/// Makes the checks common to all operations: rank, epoch, amounts, range. `bytes` is the size of the origin's
/// data. Sets `memory` unless there is `nothing` to do.
Result prepare(const Target& target, MPI_Count bytes, Window& window, bool& nothing, TargetMemory& memory);
/// Whether all of this memory is in this process's part of the window.
bool is_of_own_part(const Window& window, std::span<const Run> runs);
/// The target's memory as a buffer, at the address at which this process reaches it.
Buffer buffer_of(const TargetMemory& memory, const Target& target);
/// Copies from a buffer of this process to the target's memory.
Result store(const Buffer& from, const TargetMemory& memory, const Target& target);
/// Copies from the target's memory into a buffer of this process.
Result load(const Buffer& into, const TargetMemory& memory, const Target& target);

/// Hands an operation on private memory to its target. Sets `handed` to false if the operation has to be done differently.
/// `pending` is the caller's; if it is not null, the operation is complete at the origin.
Result hand_over(const Handing& operation, int rank, Window& window, const Pending* pending, bool& handed);

/// Waits until the operation is complete at the target. Returns the operation's failure, if any.
Result await(const Pending& operation, int rank, Window& window);

/// Begins an operation on `rank` by `call(operation)`. If the operation is still under way afterwards, sets
/// `pending` unless that is null.
template <class Call>
Result begin_remote(Window& window, int rank, const TargetMemory& memory, Pending* pending, Call&& call) {
  Pending operation = state_of(window).under_way.begin(rank);
  if (memory.waits) operation->let_caller_tell();
  Result begun = call(operation);
  if (!begun.ok())
    operation->finish(Where::target); // it has not begun
  else if (memory.waits)
    return await(operation, rank, window);
  else if (pending != nullptr && !operation->is_complete(Where::origin))
    *pending = std::move(operation);
  return begun;
}

} // namespace near::rma
