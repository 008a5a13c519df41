// Epochs. Source: MPI 5.0, section 12.5.
//
// On one machine most operations are complete when their calls return (access.cpp), so these calls only decide which process
// may continue. If operations have been handed over (handed_calls.h) or are under way (under_way.h), the calls that end an
// epoch or flush first complete them.
//
//   fence                a barrier
//   post, start          a message from the target to each origin; the origin waits for it before it comes to
//                        that target, at the latest in complete
//   complete, wait       a message from each origin to the target
//   lock, unlock         a lock in the target's region, which the target takes no part in
//   flush, sync          a fence of the processor
//
// A message, a barrier or a lock orders the accesses that precede it before those that follow it, in both processes.
#include "comm/exchange.h"
#include "p2p/fast.h"
#include "rma/epochs.h"

#include <algorithm>
#include <utility>

namespace near::rma {

namespace {

using object::Channel;

/// Tags on the window's own communicator.
constexpr int tag_posted = 1, tag_completed = 2;

/// A message without data.
Buffer nothing() { return comm::byte_buffer(nullptr, 0); }

Result await(p2p::Request* request) {
  if (request == nullptr) return {};
  p2p::wait_complete(*request);
  MPI_Request handle = p2p::public_handle(*request);
  return p2p::finish(handle, *request, MPI_STATUS_IGNORE, false);
}

/// await() for a request that several threads may wait for; one of them finishes it.
Result await_post(p2p::Request*& request) {
  p2p::wait_until([&request] { return request == nullptr || request->complete; });
  return await(std::exchange(request, nullptr));
}

/// Finds the window ranks of a group's processes. No rank appears twice.
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

Result settle(Window& window, int rank, Where where) {
  State& state = state_of(window);
  state.long_moves.synchronized();
  if (state.handed != nullptr) NEAR_TRY(state.handed->finish(rank, where));
  const Expectation expected(where == Where::target ? remote_access(state, rank) : nullptr, rank);
  return state.under_way.wait(rank, where, window);
}

Result settle_all(Window& window, Where where) {
  State& state = state_of(window);
  state.long_moves.synchronized();
  FirstFailure failure;
  if (state.handed != nullptr) failure.note(state.handed->finish_all(where));
  const Expectation expected(where == Where::target ? state.remote.get() : nullptr,
                             RemoteAccess::every_target);
  failure.note(state.under_way.wait_all(where, window));
  return failure.tell();
}

Result fence(int assertion, Window& window) {
  NEAR_TRY(check_assertion(assertion,
                           MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED));
  State& state = state_of(window);
  if (state.started || state.posted || is_locked(state))
    return out_of_order(window, "MPI_Win_fence inside an epoch of another kind");
  // The others wait in the barrier, so a failure is returned after it.
  FirstFailure failure;
  failure.note(settle_all(window, Where::target));
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
  // The targets wait for each of these messages, so all are sent before a failure is returned.
  FirstFailure failure;
  const Expectation expected(state.remote.get(),
                             RemoteAccess::every_target); // for all targets at the same time
  for (auto& [rank, request] : state.awaited) {
    failure.note(await_post(request));
    failure.note(settle(window, rank, Where::target));
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
    // Without credit the send waits for its receive, which may be posted much later. This call must not wait.
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

Result flush(int rank, Where where, Window& window) {
  if (rank == MPI_PROC_NULL) return {};
  NEAR_TRY(check_rank(rank, window));
  State& state = state_of(window);
  if (!state.locked_all && !state.held.contains(rank))
    return out_of_order(window,
                        "a flush of a target that neither MPI_Win_lock nor MPI_Win_lock_all has locked");
  NEAR_TRY(settle(window, rank, where));
  return synchronize(window);
}

Result flush_all(Where where, Window& window) {
  State& state = state_of(window);
  if (!is_locked(state))
    return out_of_order(window, "a flush outside of an epoch of MPI_Win_lock or MPI_Win_lock_all");
  NEAR_TRY(settle_all(window, where));
  return synchronize(window);
}

void poll(Window& window) {
  State& state = state_of(window);
  std::uintptr_t read = std::exchange(state.last_read, 0);
  bool has_written = std::exchange(state.has_written, false);
  const bool works = read != 0 ? p2p::background != 0 && !state.reads.repeats(read) : has_written;
  if (works)
    p2p::progress();
  else if (read != 0)
    p2p::poll(read, 1);
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

} // namespace near::rma
