// Operations on memory that this process loads and stores, inline in the calls that make them.
//
// Each function declines, without having done anything, unless an epoch is open in which this process reaches the target without
// waiting, and all of the data is in a part that this process can load and store (Member::direct). The caller then takes the slow
// path, which makes the call or says what is wrong with it.
#pragma once

#include "base/kill_point.h"
#include "copy/copy.h"
#include "copy/small.h"
#include "p2p/fast.h"
#include "rma/state.h"

namespace near::rma::fast {

/// Longer operations take the slow path. Bytes.
inline constexpr std::uint64_t most_bytes = 8u << 10;
static_assert(most_bytes < LongMoves::least);

[[gnu::always_inline]] inline void move(void* to, const void* from, std::uint64_t bytes) {
  if (bytes <= 96) [[likely]]
    return copy::small(to, from, bytes);
  copy::copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes, copy::Store::cached);
}

/// The member of that rank if an access epoch includes it, which then is used; else nullptr.
[[gnu::always_inline]] inline const Member* find_open(State& state, int rank) {
  if (static_cast<std::size_t>(static_cast<unsigned>(rank)) >= state.members.size()) return nullptr;
  if (!state.locked_all && !state.held.contains(rank)) {
    if (state.started || !state.fenced) return nullptr;
    state.fence_used = true;
  }
  return &state.members[static_cast<std::size_t>(rank)];
}

/// How far behind the beginning of the part `bytes` bytes at this displacement are; false if they are not all within a part that is
/// loaded and stored.
[[gnu::always_inline]] inline bool find_offset(const Member& member, MPI_Aint displacement,
                                               std::uint64_t bytes, std::uint64_t& offset) {
  // A negative displacement is a large number, which is out of range or overflows.
  const auto size = static_cast<std::uint64_t>(member.size);
  if (member.direct == nullptr || __builtin_mul_overflow(static_cast<std::uint64_t>(displacement),
                                                         static_cast<std::uint64_t>(member.unit), &offset))
    return false;
  return offset <= size && bytes <= size - offset;
}

/// rma::put() of `bytes` bytes without gaps, at least 1.
[[gnu::always_inline]] inline bool put(Window& window, const void* origin, std::uint64_t bytes, int rank,
                                       MPI_Aint displacement) {
  State& state = state_of(window);
  std::uint64_t offset;
  const Member* const member = find_open(state, rank);
  if (member == nullptr || bytes > most_bytes || !find_offset(*member, displacement, bytes, offset))
    return false;
  move(member->direct + offset, origin, bytes);
  note_write(state);
  return true;
}

/// rma::get() of `bytes` bytes without gaps, at least 1.
[[gnu::always_inline]] inline bool get(Window& window, void* origin, std::uint64_t bytes, int rank,
                                       MPI_Aint displacement) {
  State& state = state_of(window);
  std::uint64_t offset;
  const Member* const member = find_open(state, rank);
  if (member == nullptr || bytes > most_bytes || !find_offset(*member, displacement, bytes, offset))
    return false;
  move(origin, member->direct + offset, bytes);
  note_read(state, rank, member->address + offset);
  note_found(state, origin, bytes);
  return true;
}

/// rma::accumulate() of elements without gaps, at least 1, if the last one on this path was alike; `before` may be null.
[[gnu::always_inline]] inline bool accumulate(Window& window, const void* origin, void* before,
                                              MPI_Count count, std::uint64_t bytes, int rank,
                                              MPI_Aint displacement, MPI_Datatype type, MPI_Op operation) {
  State& state = state_of(window);
  const LastAccumulate& last = state.last_accumulate;
  if (last.operation != operation || last.type != type || (before == nullptr && last.returns_only()))
    return false;
  std::uint64_t offset;
  const Member* const member = find_open(state, rank);
  if (member == nullptr || bytes > most_bytes || !find_offset(*member, displacement, bytes, offset))
    return false;
  const ElementLock lock(*member, ElementLock::if_free);
  if (!lock.is_held()) return false;
  NEAR_KILL_POINT("short-accumulate-locked");
  std::byte* const at = member->direct + offset;
  if (before != nullptr) {
    move(before, at, bytes);
    note_read(state, rank, member->address + offset);
    note_found(state, before, bytes);
  } else {
    note_write(state);
  }
  if (last.kernel != nullptr)
    last.kernel(origin, at, at, count);
  else if (!last.returns_only())
    move(at, origin, bytes);
  return true;
}

/// rma::compare_and_swap() of one element of `bytes` bytes, of the type of the last one.
[[gnu::always_inline]] inline bool compare_and_swap(Window& window, const void* origin, const void* compare,
                                                    void* before, std::uint64_t bytes, int rank,
                                                    MPI_Aint displacement, MPI_Datatype type) {
  State& state = state_of(window);
  if (state.last_swapped != type) return false;
  std::uint64_t offset;
  const Member* const member = find_open(state, rank);
  if (member == nullptr || !find_offset(*member, displacement, bytes, offset)) return false;
  const ElementLock lock(*member, ElementLock::if_free);
  if (!lock.is_held()) return false;
  std::byte* const at = member->direct + offset;
  copy::small(before, at, bytes);
  note_read(state, rank, member->address + offset);
  note_found(state, before, bytes);
  // The common sizes without a call.
  const bool is_equal = bytes == 8   ? std::memcmp(before, compare, 8) == 0
                        : bytes == 4 ? std::memcmp(before, compare, 4) == 0
                                     : std::memcmp(before, compare, bytes) == 0;
  if (is_equal) copy::small(at, origin, bytes);
  return true;
}

/// Whether all operations of this window are complete when their calls return, and no message waits to be moved.
[[gnu::always_inline]] inline bool has_nothing_to_wait_for(const State& state) {
  return state.handed == nullptr && state.remote == nullptr && p2p::is_quiet();
}

/// What rma::poll() does where there is nothing to poll.
[[gnu::always_inline]] inline void poll_nothing(State& state) {
  state.last_read = 0;
  state.has_written = false;
}

/// rma::lock() without an assertion, of a lock that is free.
[[gnu::always_inline]] inline bool lock(Window& window, int type, int rank) {
  State& state = state_of(window);
  const auto index = static_cast<std::size_t>(static_cast<unsigned>(rank));
  if (index >= state.members.size() || state.locked_all || state.started || state.fence_used ||
      state.remote != nullptr || state.held.contains(rank))
    return false;
  auto& epoch = state.members[index].locks->epoch;
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
  const auto index = static_cast<std::size_t>(static_cast<unsigned>(rank));
  if (index >= state.members.size() || !has_nothing_to_wait_for(state)) return false;
  const Held held = state.held.of(rank);
  if (held == Held::nothing) return false;
  state.long_moves.synchronized();
  state.held.set(rank, Held::nothing);
  leave_epoch(state.members[index], held);
  poll_nothing(state);
  return true;
}

/// rma::flush_all(), whether at the targets or at the origin only.
[[gnu::always_inline]] inline bool flush_all(Window& window) {
  State& state = state_of(window);
  if (!(state.locked_all || !state.held.empty()) || !has_nothing_to_wait_for(state)) return false;
  state.long_moves.synchronized();
  poll_nothing(state);
  // SYNC: window-sync. As in rma::synchronize().
  base::Hardware::fence_store_load();
  return true;
}

/// rma::flush(), whether at the target or at the origin only.
[[gnu::always_inline]] inline bool flush(Window& window, int rank) {
  State& state = state_of(window);
  return static_cast<std::size_t>(static_cast<unsigned>(rank)) < state.members.size() &&
         (state.locked_all || state.held.contains(rank)) && flush_all(window);
}

} // namespace near::rma::fast
