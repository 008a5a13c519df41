// Operations on memory that this process loads and stores, inline in the calls that make them.
//
// Each function declines unless an open epoch lets this process reach the target without waiting and all of the data is in a part
// that it can load and store (Member::direct). A function that declines has done nothing that the general path does not do too. The
// general path then makes the call or reports what is wrong with it.
#pragma once

#include "base/kill_point.h"
#include "copy/raw.h"
#include "p2p/fast.h"
#include "rma/state.h"

namespace near::rma::fast {

/// In bytes. Longer operations take the general path.
inline constexpr std::uint64_t most_bytes = 8u << 10;
static_assert(most_bytes < LongMoves::least);

[[gnu::always_inline]] inline bool has_rank(const State& state, int rank) {
  return static_cast<std::size_t>(static_cast<unsigned>(rank)) < state.members.size();
}

/// Where `bytes` bytes at this displacement lie in the target's part, if the origin may access them now.
struct Location {
  const Member* member = nullptr; ///< null: the call must take the general path
  std::uint64_t offset = 0;
  explicit operator bool() const { return member != nullptr; }
  std::byte* here() const { return member->direct + offset; }
  std::uint64_t address() const { return member->address + offset; }
};
[[gnu::always_inline]] inline Location find_location(State& state, int rank, MPI_Aint displacement,
                                                     std::uint64_t bytes) {
  if (!has_rank(state, rank)) return {};
  // As in open_access().
  if (!state.locked_all && !state.held.contains(rank)) {
    if (state.started || !state.fenced) return {};
    state.fence_used = true;
  }
  const Member& member = state.members[static_cast<std::size_t>(rank)];
  // A negative displacement is a large number, which is out of range or overflows.
  const auto size = static_cast<std::uint64_t>(member.size);
  std::uint64_t offset;
  if (member.direct == nullptr ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(displacement),
                             static_cast<std::uint64_t>(member.unit), &offset) ||
      offset > size || bytes > size - offset)
    return {};
  return {&member, offset};
}

[[gnu::always_inline]] inline void note_read(State& state, int rank, const Location& location,
                                             const void* found, std::uint64_t bytes) {
  rma::note_read(state, rank, location.address());
  if (p2p::background != 0) [[unlikely]] // otherwise no poll yields
    note_found(state, found, bytes);
}

/// rma::put() of 1 to most_bytes bytes without gaps.
[[gnu::always_inline]] inline bool put(Window& window, const void* origin, std::uint64_t bytes, int rank,
                                       MPI_Aint displacement) {
  State& state = state_of(window);
  const Location location = find_location(state, rank, displacement, bytes);
  if (!location) return false;
  copy::block(location.here(), origin, bytes);
  note_write(state);
  return true;
}

/// rma::get() of 1 to most_bytes bytes without gaps.
[[gnu::always_inline]] inline bool get(Window& window, void* origin, std::uint64_t bytes, int rank,
                                       MPI_Aint displacement) {
  State& state = state_of(window);
  const Location location = find_location(state, rank, displacement, bytes);
  if (!location) return false;
  copy::block(origin, location.here(), bytes);
  note_read(state, rank, location, origin, bytes);
  return true;
}

/// rma::accumulate() of 1 to most_bytes bytes of elements without gaps; `before` may be null. A call that computes must be like the
/// window's last such call.
[[gnu::always_inline]] inline bool accumulate(Window& window, const void* origin, void* before,
                                              MPI_Count count, std::uint64_t bytes, int rank,
                                              MPI_Aint displacement, MPI_Datatype type, MPI_Op operation) {
  State& state = state_of(window);
  const LastAccumulate& last = state.last_accumulate;
  const bool is_last = last.operation == operation && last.type == type;
  if (!is_last && operation != MPI_REPLACE && (operation != MPI_NO_OP || before == nullptr)) return false;
  const Location location = find_location(state, rank, displacement, bytes);
  if (!location) return false;
  const ElementLock lock(*location.member, ElementLock::if_free);
  if (!lock.is_held()) return false;
  NEAR_KILL_POINT("short-accumulate-locked");
  std::byte* const at = location.here();
  if (before != nullptr) {
    copy::block(before, at, bytes);
    note_read(state, rank, location, before, bytes);
  } else {
    note_write(state);
  }
  if (is_last)
    last.kernel(origin, at, at, count);
  else if (operation == MPI_REPLACE)
    copy::block(at, origin, bytes);
  return true;
}

/// rma::compare_and_swap() of one element of `bytes` bytes, whose type is that of the last call.
[[gnu::always_inline]] inline bool compare_and_swap(Window& window, const void* origin, const void* compare,
                                                    void* before, std::uint64_t bytes, int rank,
                                                    MPI_Aint displacement, MPI_Datatype type) {
  State& state = state_of(window);
  if (state.last_swapped != type) return false;
  const Location location = find_location(state, rank, displacement, bytes);
  if (!location) return false;
  const ElementLock lock(*location.member, ElementLock::if_free);
  if (!lock.is_held()) return false;
  std::byte* const at = location.here();
  copy::small(before, at, bytes);
  note_read(state, rank, location, before, bytes);
  // The common sizes, without a function call.
  const bool is_equal = bytes == 8   ? std::memcmp(before, compare, 8) == 0
                        : bytes == 4 ? std::memcmp(before, compare, 4) == 0
                                     : std::memcmp(before, compare, bytes) == 0;
  if (is_equal) copy::small(at, origin, bytes);
  return true;
}

/// Whether all operations of this window are complete when their calls return, and no message is waiting to be moved.
[[gnu::always_inline]] inline bool has_nothing_to_wait_for(const State& state) {
  return state.handed == nullptr && state.remote == nullptr && p2p::is_quiet();
}

/// What rma::poll() does if there is nothing to poll.
[[gnu::always_inline]] inline void poll_nothing(State& state) {
  state.last_read = 0;
  state.has_written = false;
}

/// rma::lock() without an assertion, of a lock that is free.
[[gnu::always_inline]] inline bool lock(Window& window, int type, int rank) {
  State& state = state_of(window);
  if (!has_rank(state, rank) || state.locked_all || state.started || state.fence_used ||
      state.remote != nullptr || state.held.contains(rank))
    return false;
  auto& epoch = state.members[static_cast<std::size_t>(rank)].locks->epoch;
  const bool is_exclusive = type == MPI_LOCK_EXCLUSIVE;
  if (is_exclusive ? !epoch.try_exclusive() : type != MPI_LOCK_SHARED || !epoch.try_shared()) return false;
  NEAR_KILL_POINT("short-window-locked");
  state.fenced = false;
  state.held.set(rank, is_exclusive ? Held::exclusive : Held::shared);
  return true;
}

/// rma::unlock().
[[gnu::always_inline]] inline bool unlock(Window& window, int rank) {
  State& state = state_of(window);
  if (!has_rank(state, rank) || !has_nothing_to_wait_for(state)) return false;
  const Held held = state.held.of(rank);
  if (held == Held::nothing) return false;
  state.long_moves.synchronized();
  state.held.set(rank, Held::nothing);
  leave_epoch(state.members[static_cast<std::size_t>(rank)], held);
  poll_nothing(state);
  return true;
}

/// rma::flush_all(), at the targets or only at the origin.
[[gnu::always_inline]] inline bool flush_all(Window& window) {
  State& state = state_of(window);
  if (!(state.locked_all || !state.held.empty()) || !has_nothing_to_wait_for(state)) return false;
  state.long_moves.synchronized();
  poll_nothing(state);
  // SYNC: window-sync. As in rma::synchronize().
  base::Hardware::fence_store_load();
  return true;
}

/// rma::flush(), at the target or only at the origin.
[[gnu::always_inline]] inline bool flush(Window& window, int rank) {
  State& state = state_of(window);
  return has_rank(state, rank) && (state.locked_all || state.held.contains(rank)) && flush_all(window);
}

} // namespace near::rma::fast
