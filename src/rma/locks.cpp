// Locks: the epochs of MPI_Win_lock and MPI_Win_lock_all, and the lock of accumulates. Source: MPI 5.0, section 12.5.3.
#include "base/kill_point.h"
#include "rma/epochs.h"

#include <type_traits>

namespace near::rma {

namespace {

template <class Attempt>
void take(queue::SharedLock<>& lock, Attempt&& attempt) {
  p2p::wait_for_lock(
      lock.waiters, [](void* at) -> bool { return (*static_cast<std::remove_reference_t<Attempt>*>(at))(); },
      &attempt);
}

void leave(const Member& member, Held held) {
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

/// Takes all locks or none: a process that held some of them while it waits could wait for another that
/// waits for one of those.
bool try_all_shared(const State& state, std::size_t& missing) {
  for (std::size_t rank = 0; rank < state.members.size(); ++rank) {
    if (state.members[rank].locks->epoch.try_shared()) continue;
    missing = rank;
    while (rank-- > 0) leave(state.members[rank], Held::shared);
    return false;
  }
  return true;
}

} // namespace

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
  auto& its = state.members[static_cast<std::size_t>(rank)].locks->epoch;
  if (held == Held::shared) take(its, [&its] { return its.try_shared(); });
  if (held == Held::exclusive) take(its, [&its] { return its.upgrade_exclusive(); });
  NEAR_KILL_POINT("window-locked");
  state.held[rank] = held;
  return {};
}

Result unlock(int rank, Window& window) {
  if (rank == MPI_PROC_NULL) return {};
  NEAR_TRY(check_rank(rank, window));
  State& state = state_of(window);
  auto found = state.held.find(rank);
  if (found == state.held.end())
    return out_of_order(window, "MPI_Win_unlock of a target that MPI_Win_lock has not locked");
  Held held = found->second;
  FirstFailure failure;
  failure.note(state.under_way.wait(rank, Where::target, window));
  state.held.erase(rank);
  leave(state.members[static_cast<std::size_t>(rank)], held);
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
  std::size_t missing = 0;
  while (!state.unchecked_all && !try_all_shared(state, missing)) {
    // Waits until the missing lock is free, then starts again from the first.
    auto& its = state.members[missing].locks->epoch;
    take(its, [&its] { return its.try_shared(); });
    leave(state.members[missing], Held::shared);
  }
  state.locked_all = true;
  return {};
}

Result unlock_all(Window& window) {
  State& state = state_of(window);
  if (!state.locked_all) return out_of_order(window, "MPI_Win_unlock_all without MPI_Win_lock_all");
  FirstFailure failure;
  failure.note(state.under_way.wait_all(Where::target, window));
  state.locked_all = false;
  if (state.unchecked_all) {
    failure.note(synchronize(window));
    return failure.tell();
  }
  for (const Member& member : state.members) leave(member, Held::shared);
  poll(window);
  return failure.tell();
}

ElementLock::ElementLock(const Member& member) : lock_(member.locks->elements) {
  take(lock_, [this] { return lock_.try_exclusive(); });
}

ElementLock::~ElementLock() {
  lock_.release_exclusive();
  transport::lock_was_left(lock_.waiters);
}

} // namespace near::rma
