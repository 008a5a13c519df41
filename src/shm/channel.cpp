// Sends messages to a peer's queue or lane, with the flow control of both.
#include "shm/packets.h"

#include "base/kill_point.h"
#include "copy/raw.h"

#include <bit>

namespace near::shm {

namespace {

queue::Claim<> claim_channel(Peer& peer) {
  if (!peer.lane_open) return peer.producer.claim();
  stop_fast_sends(peer);
  return peer.send.lane.claim();
}

void commit(Peer& peer, queue::Claim<>&& claim) {
  header_of(claim).sequence = peer.send.next_sequence++;
  claim.commit();
  auto& bell = peer.control->doorbell;
  transport::DoorbellCalls::ring_if_sleeping(bell.sleeping, bell.bell, engine().fences);
}

void send_header(Peer& peer, queue::Claim<>&& claim, const MessageHeader& header) {
  header_of(claim) = header;
  commit(peer, std::move(claim));
  // Call it before anything else is sent, because later messages belong in the other channel.
  if (header.handler >= static_cast<std::uint8_t>(InternalHandler::lane_switch)) marker_sent(peer, header);
  if (!peer.lane_open) count_queued(peer);
}

/// Sends this peer's pending messages as far as it has free slots. Returns true if any were sent.
bool flush(Peer& peer) {
  bool moved = false;
  while (!peer.pending.empty()) {
    auto claim = claim_channel(peer);
    if (!claim) break;
    // Take it off the list first: sending it may send more messages and call this function again.
    PendingMessage message = peer.pending.front();
    peer.pending.pop_front();
    send_header(peer, std::move(claim), message.header);
    NEAR_KILL_POINT("waiting-sent");
    if (message.waiter != nullptr) message.waiter->done(*message.waiter, MPI_SUCCESS);
    moved = true;
  }
  return moved;
}

/// Drops the pending messages to a process that has left, because they would wait for ever. Their senders
/// continue.
[[gnu::cold]] bool give_up_waiting(Peer& peer) {
  std::list<PendingMessage> dropped;
  dropped.swap(peer.pending);
  for (const PendingMessage& message : dropped) {
    if (message.header.in_packet != 0) {
      const auto& reference = *reinterpret_cast<const PacketReference*>(message.header.payload);
      put_back(peer, {.reference = reference});
    }
    if (message.waiter != nullptr) message.waiter->done(*message.waiter, MPI_SUCCESS);
  }
  return true;
}

} // namespace

bool flush_pending() {
  Engine& self = engine();
  bool moved = false;
  for (std::size_t i = 0; i < self.pending_peers.size();) {
    Peer& peer = *self.pending_peers[i];
    moved |= flush(peer);
    if (!peer.pending.empty() && has_left(peer)) moved |= give_up_waiting(peer);
    if (peer.pending.empty()) {
      peer.on_pending_list = false;
      self.pending_peers[i] = self.pending_peers.back();
      self.pending_peers.pop_back();
    } else {
      ++i;
    }
  }
  return moved;
}

bool waits_for_flow_control() {
  const Engine& self = engine();
  return !self.pending_peers.empty() || !self.fragment_peers.empty() || self.kept_packets != 0;
}

[[gnu::cold]] void register_as_waiter() {
  const Engine& self = engine();
  if (self.kept_packets != 0) return_kept_packets();
  std::uint64_t us = std::uint64_t{1} << self.row % 64;
  for (const Peer* peer : self.pending_peers)
    transport::FlowControlCalls::add_waiter(peer->control->doorbell.slot_waiters, us);
  for (const Peer* peer : self.fragment_peers)
    transport::FlowControlCalls::add_waiter(peer->control->doorbell.slot_waiters, us);
  if (!self.fragment_peers.empty())
    transport::FlowControlCalls::add_waiter(self.control->doorbell.packet_waiters, us);
}

// Call after taking messages: nothing else wakes a sender that sleeps until a slot is free.
void wake_slot_waiters() {
  Engine& self = engine();
  transport::FlowControlCalls::wake_waiters(self.control->doorbell.slot_waiters, self.fences,
                                            [](std::uint64_t waiters) {
                                              note_left_fins();
                                              transport::raise_bells(waiters);
                                            });
}

queue::Claim<> claim_slot(Peer& peer) {
  if (!peer.pending.empty()) [[unlikely]] {
    flush(peer);
    if (!peer.pending.empty()) return {};
  }
  return claim_channel(peer);
}

void send_claimed(Peer& peer, queue::Claim<>&& claim) {
  commit(peer, std::move(claim));
  if (!peer.lane_open) count_queued(peer);
}

// The conditions checked here remain true: the slots belong to this process, their credits are paid, and
// everything that makes messages wait (post, hold_back) calls stop_fast_sends() first.
void allow_fast_sends(SendState& send_state) {
  Engine& self = engine();
  if (send_state.peer == nullptr) return; // not mapped yet
  const Peer& peer = own(*send_state.peer);
  if (!peer.lane_open || self.fences || peer.held || !peer.pending.empty() ||
      !send_state.credit.available(self.credit_limit))
    return;
  send_state.credit.spend(send_state.lane.find_free(send_state.credit.left(self.credit_limit)));
}

void more_to_do(SendState& send_state) {
  transport::DoorbellCalls::ring_if_sleeping(send_state.doorbell->sleeping, send_state.doorbell->bell,
                                             engine().fences);
  if (send_state.lane.left() == 0) allow_fast_sends(send_state);
}

void stop_fast_sends(Peer& peer) { peer.send.credit.take_back(peer.send.lane.give_up_left()); }

void hold_back(Peer& peer, bool held) {
  stop_fast_sends(peer);
  peer.held = held;
}

void post(Peer& peer, const MessageHeader& header) {
  if (auto claim = claim_slot(peer)) {
    send_header(peer, std::move(claim), header);
    return;
  }
  wait_for_slot(peer, header);
}

void wait_for_slot(Peer& peer, const MessageHeader& header, Transfer* waiter) {
  peer.pending.push_back({header, waiter});
  NEAR_KILL_POINT("message-waits");
  if (!peer.on_pending_list) {
    peer.on_pending_list = true;
    engine().pending_peers.push_back(&peer);
    engine().deferred_work = true;
  }
}

void post_control(Peer& peer, std::uint8_t handler, const Envelope& envelope, const void* payload,
                  std::size_t bytes) {
  MessageHeader header{};
  header.envelope = envelope;
  header.handler = handler;
  copy::raw(header.payload, payload, bytes);
  post(peer, header);
}

} // namespace near::shm
