// Epochs. Source: MPI 5.0, section 12.5.
//
// On one machine every operation is complete when its call returns (access.cpp), so these calls only decide
// which process may continue. Where operations are under way (under_way.h), the calls that end an epoch or flush first
// wait for them.
//
//   fence                a barrier
//   post, start          a message from the target to each origin; the origin waits for it before it comes to
//                        that target, at the latest in complete
//   complete, wait       a message from each origin to the target
//   lock, unlock         a lock in the target's region, which the target takes no part in
//   flush, sync          a fence of the processor
//
// A message, a barrier or a lock orders the accesses that precede it before those that follow it, in both processes.
#include "base/kill_point.h"
#include "comm/exchange.h"
#include "rma/state.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace near::rma {

namespace {

using object::Channel;

/// Tags on the window's own communicator.
constexpr int tag_posted = 1, tag_completed = 2;

Result out_of_order(const Window& window, const char* what) {
  return base::fail(MPI_ERR_RMA_SYNC, "{}: {}", object::describe(window), what);
}

Result check_assertion(int assertion, int known) {
  if ((assertion & ~known) == 0) return {};
  return base::fail(MPI_ERR_ASSERT, "assert is {:#x}, of which {:#x} means nothing here", assertion,
                    assertion & ~known);
}

/// A message without data.
Buffer nothing() { return comm::byte_buffer(nullptr, 0); }

Result await(p2p::Request* request) {
  if (request == nullptr) return {};
  p2p::wait_complete(*request);
  MPI_Request handle = p2p::public_handle(*request);
  return p2p::finish(handle, *request, MPI_STATUS_IGNORE, false);
}

/// await() for a request that several threads may wait for: one of them finishes it.
Result await_post(p2p::Request*& request) {
  p2p::wait_until([&request] { return request == nullptr || request->complete; });
  return await(std::exchange(request, nullptr));
}

/// The window's ranks of the processes of a group. None appears twice.
Result ranks_of(const Group& group, const Window& window, std::vector<int>& ranks) {
  for (int i = 0; i < group.size(); ++i) {
    int rank = object::translate_rank(group, i, *window.communicator->group);
    if (rank == MPI_UNDEFINED)
      return base::fail(MPI_ERR_GROUP, "rank {} of the group is not a process of {}", i,
                        object::describe(window));
    ranks.push_back(rank);
  }
  return {};
}

/// Ends the epoch that a fence may have begun; an error if an operation has used it.
Result end_fence(Window& window) {
  State& state = state_of(window);
  if (state.fence_used)
    return out_of_order(window,
                        "the epoch that MPI_Win_fence began has been used: end it with MPI_Win_fence");
  state.fenced = false;
  return {};
}

bool is_locked(const State& state) { return state.locked_all || !state.held.empty(); }

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

Result check_rank(int rank, const Window& window) {
  int size = window.communicator->size;
  if (rank >= 0 && rank < size) return {};
  return base::fail(MPI_ERR_RANK, "rank {} is outside {} of size {}", rank, object::describe(window), size);
}

Result open_access(int rank, Window& window) {
  State& state = state_of(window);
  if (state.locked_all || state.held.contains(rank)) return {};
  if (state.started) {
    auto found = state.awaited.find(rank);
    if (found == state.awaited.end())
      return out_of_order(window, "the target is not in the group that was given to MPI_Win_start");
    return await_post(found->second);
  }
  if (state.fenced) {
    state.fence_used = true;
    return {};
  }
  return out_of_order(window,
                      "no epoch has begun that reaches the target: call MPI_Win_fence, MPI_Win_start, "
                      "MPI_Win_lock or MPI_Win_lock_all first");
}

Result fence(int assertion, Window& window) {
  NEAR_TRY(check_assertion(assertion,
                           MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED));
  State& state = state_of(window);
  if (state.started || state.posted || is_locked(state))
    return out_of_order(window, "MPI_Win_fence inside an epoch of another kind");
  // The others wait in the barrier: a failure is returned behind it.
  FirstFailure failure;
  failure.note(state.under_way.wait_all(Where::target, window));
  NEAR_TRY(coll::barrier(*window.communicator));
  state.fenced = (assertion & MPI_MODE_NOSUCCEED) == 0;
  state.fence_used = false;
  return failure.tell();
}

Result start(const Group& targets, int assertion, Window& window) {
  NEAR_TRY(check_assertion(assertion, MPI_MODE_NOCHECK));
  State& state = state_of(window);
  if (state.started || is_locked(state)) return out_of_order(window, "MPI_Win_start inside an access epoch");
  std::vector<int> ranks;
  NEAR_TRY(ranks_of(targets, window, ranks));
  NEAR_TRY(end_fence(window));
  state.started = true;
  for (int rank : ranks) {
    p2p::Request* request = nullptr;
    // MPI_MODE_NOCHECK: every target has posted already, without a message.
    if ((assertion & MPI_MODE_NOCHECK) == 0)
      NEAR_TRY(
          p2p::start_receive(nothing(), rank, tag_posted, *window.communicator, request, Channel::internal));
    state.awaited[rank] = request;
  }
  return {};
}

Result complete(Window& window) {
  State& state = state_of(window);
  if (!state.started) return out_of_order(window, "MPI_Win_complete without MPI_Win_start");
  // The targets wait for each of these messages: all are sent before a failure is returned.
  FirstFailure failure;
  for (auto& [rank, request] : state.awaited) {
    failure.note(await_post(request));
    failure.note(state.under_way.wait(rank, Where::target, window));
    failure.note(p2p::send(nothing(), rank, tag_completed, *window.communicator, p2p::SendMode::standard,
                           Channel::internal));
  }
  state.awaited.clear();
  state.started = false;
  return failure.tell();
}

Result post(const Group& origins, int assertion, Window& window) {
  NEAR_TRY(check_assertion(assertion, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT));
  State& state = state_of(window);
  if (state.posted) return out_of_order(window, "MPI_Win_post inside an exposure epoch");
  std::vector<int> ranks;
  NEAR_TRY(ranks_of(origins, window, ranks));
  NEAR_TRY(end_fence(window));
  state.posted = true;
  for (int rank : ranks) {
    p2p::Request* request = nullptr;
    NEAR_TRY(
        p2p::start_receive(nothing(), rank, tag_completed, *window.communicator, request, Channel::internal));
    state.completions.push_back(request);
    if ((assertion & MPI_MODE_NOCHECK) != 0) continue;
    // Without credit the send waits for its receive, which may be posted much later; this call must not.
    NEAR_TRY(p2p::start_send(nothing(), rank, tag_posted, *window.communicator, p2p::SendMode::standard,
                             request, Channel::internal));
    state.completions.push_back(request);
  }
  return {};
}

Result wait(Window& window) {
  State& state = state_of(window);
  if (!state.posted) return out_of_order(window, "MPI_Win_wait without MPI_Win_post");
  Result result;
  for (auto* request : std::exchange(state.completions, {}))
    if (Result each = await(request); !each.ok()) result = each;
  state.posted = false;
  return result;
}

Result test(Window& window, bool& over) {
  State& state = state_of(window);
  if (!state.posted) return out_of_order(window, "MPI_Win_test without MPI_Win_post");
  auto all_complete = [&state] {
    return std::ranges::all_of(state.completions, [](const auto* request) { return request->complete; });
  };
  over = all_complete();
  if (!over) {
    p2p::poll(&window);
    over = all_complete();
  }
  return over ? wait(window) : Result();
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

Result flush(int rank, Where where, Window& window) {
  if (rank == MPI_PROC_NULL) return {};
  NEAR_TRY(check_rank(rank, window));
  State& state = state_of(window);
  if (!state.locked_all && !state.held.contains(rank))
    return out_of_order(window,
                        "a flush of a target that neither MPI_Win_lock nor MPI_Win_lock_all has locked");
  NEAR_TRY(state.under_way.wait(rank, where, window));
  return synchronize(window);
}

Result flush_all(Where where, Window& window) {
  State& state = state_of(window);
  if (!is_locked(state))
    return out_of_order(window, "a flush outside of an epoch of MPI_Win_lock or MPI_Win_lock_all");
  NEAR_TRY(state.under_way.wait_all(where, window));
  return synchronize(window);
}

void poll(Window& window) {
  State& state = state_of(window);
  std::uintptr_t read = std::exchange(state.last_read, 0);
  bool has_written = std::exchange(state.has_written, false);
  if (read != 0)
    p2p::poll(read, 1);
  else if (has_written)
    p2p::progress();
  else
    p2p::poll(&window);
}

Result synchronize(Window& window) {
  poll(window);
  // SYNC: window-sync. Every process that shares the window executes this fence. If one process stores data, executes
  // the fence and then stores a word, another one that loads this word and then executes the fence sees the data.
  // Stores that bypass the cache are ordered where they are made (copy/).
  base::Hardware::fence_store_load();
  return {};
}

ElementLock::ElementLock(const Member& member) : lock_(member.locks->elements) {
  take(lock_, [this] { return lock_.try_exclusive(); });
}

ElementLock::~ElementLock() {
  lock_.release_exclusive();
  transport::lock_was_left(lock_.waiters);
}

} // namespace near::rma
