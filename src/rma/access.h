// The steps that puts, gets and accumulates share. See access.cpp.
#pragma once

#include "rma/runs.h"
#include "rma/state.h"

#include <span>
#include <utility>

namespace near::rma {

/// What every operation checks: rank, epoch, amounts, range. `bytes`: the origin's. Sets `memory` unless there
/// is `nothing` to do.
Result prepare(const Target& target, MPI_Count bytes, Window& window, bool& nothing, TargetMemory& memory);
/// Whether all of this memory is in this process's part of the window.
bool is_of_own_part(const Window& window, std::span<const Run> runs);
/// The target's memory as a buffer, at its address as this process gets at it.
Buffer buffer_of(const TargetMemory& memory, const Target& target);
/// Copies from a buffer of this process to the target's memory.
Result store(const Buffer& from, const TargetMemory& memory, const Target& target);
/// Copies from the target's memory into a buffer of this process.
Result load(const Buffer& into, const TargetMemory& memory, const Target& target);

/// Hands an operation on private memory to its target. Sets `handed` to false if it has to be done in another way. `pending`: that of
/// the caller; if it is not null, the operation is complete at the origin.
Result hand_over(const Handing& operation, int rank, Window& window, const Pending* pending, bool& handed);

/// Waits until the operation is complete at the target, and returns its failure.
Result await(const Pending& operation, int rank, Window& window);

/// Begins an operation on `rank` by `call(operation)`, and sets `pending`, unless that is null, if it is
/// still under way afterwards.
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
