// Progress: reads the messages in this process's queue and lanes, and does the deferred work.
#include "shm/packets.h"

#include "base/kill_point.h"
#include "base/log.h"
#include "memory/segments.h"

#include <algorithm>
#include <bit>

namespace near::shm {

namespace {

HandlerFunction handlers[static_cast<int>(InternalHandler::count)] = {};

[[gnu::always_inline]] inline void dispatch(Peer& from, const MessageHeader& header) {
  if (header.sequence != from.receive.expected_sequence) [[unlikely]]
    base::log(base::Level::error,
              "message {} of rank {} arrived where message {} was expected: this is a defect of NearMPI",
              header.sequence, memory::process_in(from.row).rank, from.receive.expected_sequence);
  from.receive.expected_sequence = header.sequence + 1;
  from.receive.whole = header.handler == static_cast<std::uint8_t>(Handler::p2p_eager);
  Arrival arrival{&from, header.envelope, header.payload,
                  std::min<std::uint64_t>(header.envelope.bytes, inline_bytes), 0};
  if (header.in_packet != 0) {
    const auto& reference = *reinterpret_cast<const PacketReference*>(header.payload);
    arrival.payload = packet_at(from, reference.packet, reference.is_receivers);
    arrival.payload_bytes = reference.bytes;
    arrival.packet = packet_of(reference);
    if (header.handler == static_cast<std::uint8_t>(Handler::p2p_eager)) from.kept.message_came();
    handlers[header.handler](arrival);
    if (arrival.packet != 0) done_with_packet(from, reference);
    return;
  }
  handlers[header.handler](arrival);
}

[[gnu::always_inline]] inline bool take_from_lane(LaneIn& lane) {
  const std::byte* body = lane.reader.front();
  if (body == nullptr) return false;
  dispatch(*lane.from, *reinterpret_cast<const MessageHeader*>(body));
  lane.reader.pop();
  if (lane.from == nullptr) [[unlikely]]
    lane_is_free(lane);
  return true;
}

/// Call when `from` sends through the queue again: reads what it left in its lane, which comes first.
[[gnu::cold]] [[gnu::noinline]] void drain_lane(const Peer& from) {
  while (from.lane_in != nullptr && take_from_lane(*from.lane_in)) {}
}

bool take_from_queue() {
  Engine& self = engine();
  // SYNC: rank-phase. Acquire: a slot that the dead process committed is seen as committed from here on.
  auto is_dead = [](std::uint32_t row) {
    return memory::space().segment.entry(row).phase.load_acquire() ==
           static_cast<std::uint32_t>(segment::Phase::dead);
  };
  auto entry = self.queue.front(is_dead);
  if (entry.body == nullptr) return false;
  Peer& from = peer_in(entry.claimer);
  const auto& header = *reinterpret_cast<const MessageHeader*>(entry.body);
  if (from.lane_in != nullptr && header.sequence != from.receive.expected_sequence) [[unlikely]]
    drain_lane(from);
  dispatch(from, header);
  self.queue.pop();
  return true;
}

} // namespace

void set_handler(Handler handler, HandlerFunction function) {
  handlers[static_cast<int>(handler)] = function;
}

HandlerFunction handler_of(Handler handler) { return handlers[static_cast<int>(handler)]; }

void set_internal_handlers() {
  handlers[static_cast<int>(InternalHandler::fin)] = handle_fin;
  handlers[static_cast<int>(InternalHandler::cts)] = handle_cts;
  handlers[static_cast<int>(InternalHandler::fragment)] = handle_fragment;
  handlers[static_cast<int>(InternalHandler::prefix_fragment)] = handle_prefix_fragment;
  handlers[static_cast<int>(InternalHandler::cooperate)] = handle_cooperate;
  handlers[static_cast<int>(InternalHandler::train)] = handle_train;
  handlers[static_cast<int>(InternalHandler::train_part)] = handle_train_part;
  handlers[static_cast<int>(InternalHandler::last_call)] = handle_last_call;
  handlers[static_cast<int>(InternalHandler::closed)] = handle_closed;
  handlers[static_cast<int>(InternalHandler::lane_request)] = handle_lane_request;
  handlers[static_cast<int>(InternalHandler::lane_granted)] = handle_lane_granted;
  handlers[static_cast<int>(InternalHandler::lane_switch)] = handle_lane_switch;
  handlers[static_cast<int>(InternalHandler::lane_recall)] = handle_lane_recall;
  handlers[static_cast<int>(InternalHandler::lane_return)] = handle_lane_return;
}

bool has_arrived() {
  Engine& self = engine();
  for (std::uint32_t i = 0; i < self.lane_count; ++i)
    if (self.lanes[i].open.load_relaxed() != 0 && self.lanes[i].reader.has_message()) return true;
  return self.queue.has_message();
}

[[gnu::noinline]] bool make_progress() {
  Engine& self = engine();
  bool moved = false;
  // Take a bounded number of messages from each channel, so that a peer that floods us delays neither the other
  // peers nor our own sends.
  for (std::uint32_t open = self.open_lanes; open != 0; open &= open - 1) {
    LaneIn& lane = self.lanes[std::countr_zero(open)];
    int budget = 16;
    while (budget > 0 && lane.open.load_relaxed() != 0 && take_from_lane(lane)) --budget;
    if (budget == 16)
      lane.polled_in_vain = true;
    else
      moved = true;
  }
  for (int budget = 64; budget > 0 && take_from_queue(); --budget) moved = true;
  if (moved) wake_slot_waiters();
  if (self.deferred_work) [[unlikely]] {
    if (!self.pending_peers.empty()) moved |= flush_pending();
    if (!self.fragment_peers.empty()) moved |= send_fragments();
    if (!self.cooperative_sends.empty()) moved |= push_chunks();
    if (self.fins_are_left) moved |= collect_left_fins();
    self.deferred_work = !self.pending_peers.empty() || !self.fragment_peers.empty() ||
                         !self.cooperative_sends.empty() || self.fins_are_left || self.always_polled;
  }
  return moved;
}

bool is_idle() {
  const Engine& self = engine();
  // Most polls find nothing: they cost a few loads, whatever the number of peers.
  return self.open_lanes == 0 && !self.deferred_work && !self.queue.has_entry();
}

bool has_nothing_to_move() {
  const Engine& self = engine();
  if (self.deferred_work || self.queue.has_entry()) return false;
  for (std::uint32_t open = self.open_lanes; open != 0; open &= open - 1)
    if (self.lanes[std::countr_zero(open)].reader.has_message()) return false;
  return true;
}

} // namespace near::shm
