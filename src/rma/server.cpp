// See server.h.
#include "rma/server.h"

#include "comm/exchange.h"
#include "rma/access.h"
#include "rma/completed.h"
#include "rma/elements.h"

#include <algorithm>
#include <new>
#include <utility>

namespace near::rma {

namespace {

/// How many calls, and how many bytes, are received before the first of these calls is carried out.
constexpr std::size_t most_incoming = 16, most_incoming_bytes = 4 << 20;
/// How many calls are carried out before the progress engine continues with its other work.
constexpr int calls_at_once = 64;

std::unique_ptr<std::byte[]> memory_for(std::size_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(bytes);
}

bool is_operation(const CallHead& head, MPI_Op operation) {
  return head.operation == static_cast<object::HandleBits>(reinterpret_cast<std::uintptr_t>(operation));
}
bool is_no_op(const CallHead& head) { return is_operation(head, MPI_NO_OP); }

} // namespace

void Server::advance() {
  end_answers();
  if (!granted_.empty() || !wanted_.empty()) forget_failed();
  for (int left = calls_at_once; left > 0; --left) {
    const bool received = receive();
    if (!serve_first() && !received) break;
  }
  grant_locks();
}

bool Server::is_idle() const {
  return incoming_.empty() && wanted_.empty() && granted_.empty() && outgoing_.empty();
}

/// Begins to receive the next call. Returns false if none has arrived, or if enough are being received.
bool Server::receive() {
  if (incoming_.size() >= most_incoming || incoming_bytes_ >= most_incoming_bytes) return false;
  p2p::Completion envelope;
  object::Communicator& communicator = *window_.communicator;
  if (!p2p::probe(MPI_ANY_SOURCE, call_tag, communicator, envelope)) return false;
  // Allocated before the message is taken, which would otherwise be lost if there is no memory.
  Incoming made{envelope.source, memory_for(static_cast<std::size_t>(envelope.bytes)),
                static_cast<std::size_t>(envelope.bytes)};
  bool found = false;
  p2p::Message* message = nullptr;
  if (!p2p::probe_matched(envelope.source, call_tag, communicator, found, message, envelope).ok() || !found)
    return false; // it is tried again
  const Buffer into = comm::byte_buffer(made.data.get(), made.bytes);
  if (!p2p::start_receive_matched(*message, into, made.request).ok()) throw std::bad_alloc();
  incoming_bytes_ += made.bytes;
  incoming_.push_back(std::move(made));
  return true;
}

/// Carries out the oldest call. Returns false if none can be carried out now.
bool Server::serve_first() {
  if (incoming_.empty() || !incoming_.front().request->complete) return false;
  Incoming& first = incoming_.front();
  Received call{first.origin, {}, {}, {}};
  // The origin failed while its call was being received.
  bool valid = first.request->completion.error == MPI_SUCCESS && first.bytes >= sizeof call.head;
  if (valid) {
    const std::byte* at = first.data.get();
    std::memcpy(&call.head, at, sizeof call.head);
    const std::size_t left = first.bytes - sizeof call.head;
    valid = call.head.runs <= left / sizeof(Run);
    if (valid) {
      at += sizeof call.head;
      call.runs = {reinterpret_cast<const Run*>(at), call.head.runs};
      at += call.runs.size_bytes();
      call.data = {at, left - call.runs.size_bytes()};
      valid = is_whole(call);
    }
  }
  if (valid && !carry_out(call)) {
    if (!awaits_elements_) awaits_elements_.emplace(state_of(window_).own->elements.waiters);
    return false;
  }
  awaits_elements_.reset();
  incoming_bytes_ -= first.bytes;
  (void)end(first.request); // after an error there is no one to tell
  incoming_.pop_front();
  return true;
}

/// Whether the lengths in a call are consistent.
bool Server::is_whole(const Received& call) const {
  std::uint64_t bytes = 0;
  if (!count_bytes(call.runs, bytes) || bytes != call.head.bytes) return false;
  const bool changes = !is_no_op(call.head);
  switch (call.head.call) {
  case Call::put: return call.data.size() == bytes;
  case Call::accumulate: return call.data.size() == (changes ? bytes : 0);
  case Call::compare_and_swap: return call.data.size() == 2 * bytes;
  default: return call.data.empty();
  }
}

/// Returns false if the call has to wait for the element lock.
bool Server::carry_out(const Received& call) {
  const CallHead& head = call.head;
  switch (head.call) {
  case Call::put:
    if (!is_of_own_part(window_, call.runs)) return refuse(call), true;
    scatter(call.runs, call.data.data());
    return true;
  case Call::get: {
    if (!is_of_own_part(window_, call.runs)) return refuse(call), true;
    auto data = memory_for(head.bytes);
    gather(call.runs, data.get());
    send(call.origin, head.answer_tag, std::move(data), head.bytes);
    return true;
  }
  case Call::accumulate:
  case Call::compare_and_swap:
    if (!is_of_own_part(window_, call.runs)) return refuse(call), true;
    return accumulate(call);
  case Call::check:
    answer(call, {is_of_own_part(window_, call.runs) ? MPI_SUCCESS : MPI_ERR_RMA_RANGE});
    return true;
  case Call::flush: {
    const auto found = errors_.find(call.origin);
    answer(call, {found != errors_.end() ? found->second : MPI_SUCCESS});
    if (found != errors_.end()) errors_.erase(found);
    return true;
  }
  case Call::lock_shared: wanted_.push_back({call.origin, false, head.answer_tag}); return true;
  case Call::lock_exclusive: wanted_.push_back({call.origin, true, head.answer_tag}); return true;
  case Call::try_shared: try_lock(call); return true;
  case Call::unlock_shared: unlock(call.origin, false); return true;
  case Call::unlock_exclusive: unlock(call.origin, true); return true;
  }
  return true;
}

/// Carries out accumulate and compare_and_swap. Returns false if the element lock is taken.
bool Server::accumulate(const Received& call) {
  const CallHead& head = call.head;
  const State& state = state_of(window_);
  const bool swaps = head.call == Call::compare_and_swap;
  const bool computes = !swaps && !is_no_op(head) && !is_operation(head, MPI_REPLACE);
  Reduction reduction;
  if (computes && !reduction.prepare(head.operation, head.element, call.data).ok()) return refuse(call), true;
  // Memory is allocated before the lock is taken.
  const bool fetches = swaps || head.fetches;
  auto before = fetches || computes ? memory_for(head.bytes) : nullptr;
  {
    const ElementLock lock(state.members[static_cast<std::size_t>(state.rank)], ElementLock::if_free);
    if (!lock.is_held()) return false;
    if (before != nullptr) gather(call.runs, before.get());
    if (swaps) {
      if (std::memcmp(before.get(), call.data.data() + head.bytes, head.bytes) == 0)
        scatter(call.runs, call.data.data());
    } else if (computes) {
      scatter(call.runs, reduction.apply(before.get()));
    } else if (!is_no_op(head)) {
      scatter(call.runs, call.data.data());
    }
  }
  if (fetches) send(call.origin, head.answer_tag, std::move(before), head.bytes);
  return true;
}

/// Tells the origin of a call that some of the memory is not in the window.
void Server::refuse(const Received& call) {
  if (call.head.call == Call::get || call.head.call == Call::compare_and_swap || call.head.fetches)
    send(call.origin, call.head.answer_tag, nullptr, 0);
  else
    errors_.emplace(call.origin, MPI_ERR_RMA_RANGE);
}

void Server::answer(const Received& call, Answer answer) {
  auto data = memory_for(sizeof answer);
  std::memcpy(data.get(), &answer, sizeof answer);
  send(call.origin, call.head.answer_tag, std::move(data), sizeof answer);
}

void Server::send(int origin, std::uint32_t tag, std::unique_ptr<std::byte[]> data, std::size_t bytes) {
  Outgoing made{std::move(data)};
  const Result sent =
      p2p::start_send(comm::byte_buffer(made.data.get(), bytes), origin, static_cast<int>(tag),
                      *window_.communicator, p2p::SendMode::standard, made.request);
  if (!sent.ok()) return; // the origin has failed
  if (made.request->complete)
    (void)end(made.request);
  else
    outgoing_.push_back(std::move(made));
}

void Server::end_answers() {
  std::erase_if(outgoing_, [](Outgoing& each) {
    if (!each.request->complete) return false;
    (void)end(each.request);
    return true;
  });
}

/// Takes the lock if it is free and no process waits for it.
void Server::try_lock(const Received& call) {
  const State& state = state_of(window_);
  const Member& own = state.members[static_cast<std::size_t>(state.rank)];
  const bool granted = wanted_.empty() && try_epoch(own, Held::shared);
  if (granted) granted_.push_back({call.origin, false, 0});
  answer(call, {MPI_SUCCESS, granted});
}

void Server::unlock(int origin, bool exclusive) {
  const auto found = std::find_if(granted_.begin(), granted_.end(), [&](const LockCall& each) {
    return each.origin == origin && each.exclusive == exclusive;
  });
  if (found == granted_.end()) return;
  granted_.erase(found);
  const State& state = state_of(window_);
  leave_epoch(state.members[static_cast<std::size_t>(state.rank)],
              exclusive ? Held::exclusive : Held::shared);
}

/// Takes the locks that processes wait for, in the order of their calls.
void Server::grant_locks() {
  const State& state = state_of(window_);
  const Member& own = state.members[static_cast<std::size_t>(state.rank)];
  while (!wanted_.empty() && try_epoch(own, wanted_.front().exclusive ? Held::exclusive : Held::shared)) {
    const LockCall first = wanted_.front();
    wanted_.pop_front();
    granted_.push_back(first);
    CallHead head;
    head.answer_tag = first.answer_tag;
    answer({first.origin, head, {}, {}}, {MPI_SUCCESS, 1});
  }
  if (wanted_.empty())
    awaits_epoch_.reset();
  else if (!awaits_epoch_)
    awaits_epoch_.emplace(state.own->epoch.waiters);
}

/// Frees the locks of failed processes, and drops them from the waiters.
void Server::forget_failed() {
  auto has_failed = [&](const LockCall& each) {
    return transport::has_failed(peer_of(window_, each.origin));
  };
  // The first waiter may have announced that it waits for the
  // exclusive lock, so it takes that lock and releases it.
  std::erase_if(wanted_, [&](const LockCall& each) { return &each != &wanted_.front() && has_failed(each); });
  std::vector<LockCall> failed;
  std::copy_if(granted_.begin(), granted_.end(), std::back_inserter(failed), has_failed);
  for (const LockCall& each : failed) unlock(each.origin, each.exclusive);
}

} // namespace near::rma
