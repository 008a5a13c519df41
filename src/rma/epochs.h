// Shared by the files about epochs: the checks that their calls make. See synchronize.cpp and locks.cpp.
#pragma once

#include "rma/state.h"

namespace near::rma {

inline Result out_of_order(const Window& window, const char* what) {
  return base::fail(MPI_ERR_RMA_SYNC, "{}: {}", object::describe(window), what);
}

inline Result check_assertion(int assertion, int known) {
  if ((assertion & ~known) == 0) return {};
  return base::fail(MPI_ERR_ASSERT, "assert is {:#x}, of which {:#x} means nothing here", assertion,
                    assertion & ~known);
}

/// Ends the epoch that a fence may have begun. Fails if an operation has used that epoch.
inline Result end_fence(Window& window) {
  State& state = state_of(window);
  if (state.fence_used)
    return out_of_order(window,
                        "the epoch that MPI_Win_fence began has been used: end it with MPI_Win_fence");
  state.fenced = false;
  return {};
}

inline bool is_locked(const State& state) { return state.locked_all || !state.held.empty(); }

} // namespace near::rma
