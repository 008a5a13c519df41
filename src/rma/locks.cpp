// Locks: the epochs of MPI_Win_lock and MPI_Win_lock_all, and the lock of accumulates. Source: MPI 5.0, section 12.5.3.
#include "base/kill_point.h"
#include "rma/epochs.h"

#include <type_traits>

namespace near::rma {

namespace {

template <class Attempt>
void take(queue::SharedLock<>& lock, Attempt&& attempt) {
  if (attempt()) return;
  p2p::wait_for_lock(
      lock.waiters, [](void* at) -> bool { return (*static_cast<std::remove_reference_t<Attempt>*>(at))(); },
      &attempt);
}

/// Takes all locks or none. A process that waits while it holds some of them could wait for another that
/// waits for one of those.
Result try_all_shared(const State& state, bool& taken, std::size_t& missing) {
  const auto count = state.members.size();
  auto leave_all_before = [&](std::size_t end) {
    for (std::size_t rank = end; rank-- > 0;)
      if (remote_access(state, static_cast<int>(rank)) == nullptr)
        leave_epoch(state.members[rank], Held::shared);
  };
  taken = false;
  for (std::size_t rank = 0; rank < count; ++rank) {
    if (remote_access(state, static_cast<int>(rank)) != nullptr) continue;
    if (try_epoch(state.members[rank], Held::shared)) continue;
    missing = rank;
    leave_all_before(rank);
    return {};
  }
  Result result;
  taken = true;
  if (state.remote != nullptr) result = state.remote->try_all_shared(taken, missing);
  if (!result.ok() || !taken) leave_all_before(count);
  return result;
}

/// Waits for the lock of a target.
Result take_epoch(const State& state, int rank, Held held) {
  if (RemoteAccess* remote = remote_access(state, rank)) return remote->lock(rank, held == Held::exclusive);
  const Member& member = state.members[static_cast<std::size_t>(rank)];
  take(member.locks->epoch, [&] { return try_epoch(member, held); });
  return {};
}

Result leave_epoch_of(const State& state, int rank, Held held) {
  RemoteAccess* remote = held == Held::unchecked ? nullptr : remote_access(state, rank);
  if (remote != nullptr) return remote->unlock(rank, held == Held::exclusive);
  leave_epoch(state.members[static_cast<std::size_t>(rank)], held);
  return {};
}

} // namespace

bool try_epoch(const Member& member, Held held) {
  auto& lock = member.locks->epoch;
  return held == Held::exclusive ? lock.upgrade_exclusive() : lock.try_shared();
}

void leave_epoch(const Member& member, Held held) {
  if (held == Held::unchecked) {
    // SYNC: window-sync. As in synchronize(): nothing else orders what this epoch has done.
    base::Hardware::fence_store_load();
    return;
  }
  auto& lock = member.locks->epoch;
  if (held == Held::shared) lock.release_shared();
  if (held == Held::exclusive) lock.release_exclusive();
  NEAR_KILL_POINT("window-left");
  transport::lock_was_left(lock.waiters);
}

Result lock(int type, int rank, int assertion, Window& window) {
  if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE)
    return base::fail(MPI_ERR_LOCKTYPE,
                      "lock_type is {}, but must be MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE (compiled with "
                      "another library's mpi.h?)",
                      type);
  NEAR_TRY(check_assertion(assertion, MPI_MODE_NOCHECK));
  if (rank == MPI_PROC_NULL) return {};
  NEAR_TRY(check_rank(rank, window));
  State& state = state_of(window);
  if (state.locked_all || state.started || state.held.contains(rank))
    return out_of_order(window, state.started      ? "MPI_Win_lock inside an epoch of MPI_Win_start"
                                : state.locked_all ? "MPI_Win_lock inside an epoch of MPI_Win_lock_all"
                                                   : "MPI_Win_lock of a target that is locked already");
  NEAR_TRY(end_fence(window));
  Held held = type == MPI_LOCK_SHARED ? Held::shared : Held::exclusive;
  if ((assertion & MPI_MODE_NOCHECK) != 0) held = Held::unchecked;
  if (held != Held::unchecked) NEAR_TRY(take_epoch(state, rank, held));
  NEAR_KILL_POINT("window-locked");
  state.held.set(rank, held);
  return {};
}

Result unlock(int rank, Window& window) {
  if (rank == MPI_PROC_NULL) return {};
  NEAR_TRY(check_rank(rank, window));
  State& state = state_of(window);
  const Held held = state.held.of(rank);
  if (held == Held::nothing)
    return out_of_order(window, "MPI_Win_unlock of a target that MPI_Win_lock has not locked");
  FirstFailure failure;
  failure.note(settle(window, rank, Where::target));
  state.held.set(rank, Held::nothing);
  failure.note(leave_epoch_of(state, rank, held));
  poll(window); // not while it holds the lock
  return failure.tell();
}

Result lock_all(int assertion, Window& window) {
  NEAR_TRY(check_assertion(assertion, MPI_MODE_NOCHECK));
  State& state = state_of(window);
  if (state.started || is_locked(state))
    return out_of_order(window, "MPI_Win_lock_all inside an access epoch");
  NEAR_TRY(end_fence(window));
  state.unchecked_all = (assertion & MPI_MODE_NOCHECK) != 0;
  bool taken = state.unchecked_all;
  while (!taken) {
    std::size_t missing = 0;
    NEAR_TRY(try_all_shared(state, taken, missing));
    if (taken) break;
    // Waits until the missing lock is free, then starts again from the first.
    NEAR_TRY(take_epoch(state, static_cast<int>(missing), Held::shared));
    NEAR_TRY(leave_epoch_of(state, static_cast<int>(missing), Held::shared));
  }
  state.locked_all = true;
  return {};
}

Result unlock_all(Window& window) {
  State& state = state_of(window);
  if (!state.locked_all) return out_of_order(window, "MPI_Win_unlock_all without MPI_Win_lock_all");
  FirstFailure failure;
  failure.note(settle_all(window, Where::target));
  state.locked_all = false;
  if (state.unchecked_all) {
    failure.note(synchronize(window));
    return failure.tell();
  }
  for (int rank = 0; rank < window.communicator->size; ++rank)
    if (remote_access(state, rank) == nullptr)
      leave_epoch(state.members[static_cast<std::size_t>(rank)], Held::shared);
  if (state.remote != nullptr) failure.note(state.remote->unlock_all_shared());
  poll(window);
  return failure.tell();
}

ElementLock::ElementLock(const Member& member) : lock_(member.locks->elements) {
  take(lock_, [this] { return lock_.try_exclusive(); });
}

ElementLock::ElementLock(const Member& member, IfFree)
    : lock_(member.locks->elements), is_held_(lock_.try_exclusive()) {}

ElementLock::~ElementLock() {
  if (!is_held_) return;
  lock_.release_exclusive();
  transport::lock_was_left(lock_.waiters);
}

} // namespace near::rma
