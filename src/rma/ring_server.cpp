// See ring_server.h.
#include "rma/ring_server.h"

#include "base/kill_point.h"
#include "rma/access.h"

#include <algorithm>
#include <span>

namespace near::rma {

void RingServer::advance() {
  find_new_rings();
  constexpr std::size_t most_looks = 8; // so that the time of a poll does not grow with the number of origins
  bool served = false;
  for (std::size_t left = std::min(rings_.size(), most_looks); left > 0; --left) {
    if (next_ >= rings_.size()) next_ = 0;
    served |= serve(*rings_[next_++]);
  }
  if (served) transport::note_progress();
}

void RingServer::find_new_rings() {
  const State& state = state_of(window_);
  // SYNC: call-rings. Acquire: the rings that are listed have been set up.
  const Offset newest = state.own->rings.load_acquire();
  if (newest == newest_) [[likely]]
    return;
  const segment::Segment& segment = *state.members[static_cast<std::size_t>(state.rank)].segment;
  for (Offset each = newest; each != newest_;) {
    auto* ring = segment.at<CallRing>(each);
    rings_.push_back(ring);
    each = ring->next;
  }
  newest_ = newest;
}

/// Returns whether a call was carried out.
bool RingServer::serve(CallRing& ring) {
  const queue::Number seen = ring.turn.seen();
  if (!ring.call(seen + 1).number.has(seen + 1)) return false;
  queue::Number completed = 0;
  if (!ring.turn.take(queue::CallTurn<>::Holder::target, completed)) return false;
  NEAR_KILL_POINT("calls-taken");
  const queue::Number before = completed;
  while (ring.call(completed + 1).number.has(completed + 1) && carry_out(ring, ring.call(completed + 1)))
    ++completed;
  ring.turn.leave(completed);
  NEAR_KILL_POINT("calls-left");
  return completed != before;
}

namespace {

/// Whether the fields of a call are consistent.
bool is_whole(const HandedCall& call) {
  const std::uint64_t data = call.data_bytes(), runs = call.runs * sizeof(Run);
  if (call.bytes == 0 || call.bytes > CallRing::longest || call.runs > CallRing::most_runs) return false;
  if (call.at == HandedCall::here
          ? call.runs != 0 || data > HandedCall::short_bytes
          : call.at > CallRing::data_bytes || runs + data > CallRing::data_bytes - call.at)
    return false;
  switch (call.kind) {
  case HandedKind::put: return call.operands == 1 && call.fetches == 0;
  case HandedKind::get: return call.operands == 0 && call.fetches == 1;
  case HandedKind::accumulate: return call.operands <= 1 && call.fetches <= 1;
  case HandedKind::compare_and_swap: return call.operands == 2 && call.fetches == 1 && call.runs == 0;
  }
  return false;
}

} // namespace

/// Returns false if the call has to wait for the element lock.
bool RingServer::carry_out(CallRing& ring, HandedCall& call) {
  // The origin has checked all this, but memory may have been detached since then.
  call.is_outside = 1;
  if (!is_whole(call)) return true;
  const Run whole{call.address, call.bytes};
  const std::span<const Run> runs =
      call.runs == 0 ? std::span(&whole, 1) : std::span<const Run>(ring.runs_of(call), call.runs);
  std::uint64_t bytes = 0;
  if (!count_bytes(runs, bytes) || bytes != call.bytes || !is_of_own_part(window_, runs)) return true;
  call.is_outside = 0;
  if (call.kind == HandedKind::put) return scatter(runs, ring.data_of(call)), true;
  if (call.kind == HandedKind::get) return gather(runs, ring.before_of(call)), true;
  const State& state = state_of(window_);
  const ElementLock lock(state.members[static_cast<std::size_t>(state.rank)], ElementLock::if_free);
  if (!lock.is_held()) return false;
  if (call.fetches != 0) gather(runs, ring.before_of(call));
  const std::byte* operands = ring.data_of(call);
  each_piece(runs, [&](std::uint64_t address, std::uint64_t length) {
    change_elements(call, operands, reinterpret_cast<std::byte*>(address), length);
    if (call.operands != 0) operands += length;
    return true;
  });
  return true;
}

} // namespace near::rma
