// See ring_server.h.
#include "rma/ring_server.h"

#include "base/kill_point.h"
#include "copy/raw.h"
#include "rma/state.h"

#include <algorithm>

namespace near::rma {

void RingServer::advance() {
  find_new_rings();
  constexpr std::size_t most_looks = 8; // the time of a poll does not grow with the number of origins
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

/// Whether the parts of a call agree.
bool is_whole(const HandedCall& call) {
  switch (call.kind) {
  case HandedKind::put: return call.operands == 1 && call.fetches == 0;
  case HandedKind::get: return call.operands == 0 && call.fetches == 1;
  case HandedKind::accumulate: return call.operands <= 1 && call.fetches <= 1;
  case HandedKind::compare_and_swap: return call.operands == 2 && call.fetches == 1;
  }
  return false;
}

} // namespace

/// Whether the call is one that an origin can have handed over, and all of its memory part of the window. The origin has checked that,
/// but memory may have been detached since.
bool RingServer::is_ours(const HandedCall& call) const {
  const State& state = state_of(window_);
  const Member& own = state.members[static_cast<std::size_t>(state.rank)];
  const std::uint64_t begin = call.address, behind = begin + call.bytes;
  if (behind <= begin || call.bytes > CallRing::longest || !is_whole(call)) return false;
  const std::uint64_t data = call.data_bytes();
  if (call.at == HandedCall::here ? data > HandedCall::short_bytes
                                  : call.at > CallRing::data_bytes || data > CallRing::data_bytes - call.at)
    return false;
  if (window_.flavor != MPI_WIN_FLAVOR_DYNAMIC)
    return begin >= own.address && behind <= own.address + static_cast<std::uint64_t>(own.size);
  AttachedRange found;
  return find_attached(*own.segment, own.locks->attached, begin, behind, found);
}

/// Returns false if the call has to wait for the element lock.
bool RingServer::carry_out(CallRing& ring, HandedCall& call) {
  call.is_outside = is_ours(call) ? 0 : 1;
  if (call.is_outside != 0) return true;
  auto* memory = reinterpret_cast<std::byte*>(call.address);
  if (call.kind == HandedKind::put) {
    copy::raw(memory, ring.data_of(call), call.bytes);
    return true;
  }
  if (call.kind == HandedKind::get) {
    copy::raw(ring.before_of(call), memory, call.bytes);
    return true;
  }
  const State& state = state_of(window_);
  const ElementLock lock(state.members[static_cast<std::size_t>(state.rank)], ElementLock::if_free);
  if (!lock.is_held()) return false;
  if (call.fetches != 0) copy::raw(ring.before_of(call), memory, call.bytes);
  change_elements(call, ring.data_of(call), memory);
  return true;
}

} // namespace near::rma
