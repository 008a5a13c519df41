// Lanes: which pairs have one, and how a pair moves from the receiver's queue to its lane and back.
//
//   sender                                   receiver, which owns the lanes
//   many messages through the queue
//   lane_request ------------- queue ----->  grants a free lane, or recalls the coldest one: lane_granted
//   lane_switch, the last one  - queue --->  reads the lane from here on
//   messages ----------------- lane ------>
//                                            another pair needs the lane: lane_recall
//   lane_return, the last one  - lane ---->  the lane is drained: free, or granted to the next pair
//   messages ----------------- queue ----->
//
// Order: a marker is the last message of its channel, and the receiver reads the other channel only after it.
// If a message in the queue overtakes the end of the lane, the receiver first drains the lane (see
// take_from_queue). Every header carries the pair's sequence number, which reveals any mistake at once.
#include "shm/engine.h"

#include "base/kill_point.h"
#include "base/log.h"
#include "memory/segments.h"

namespace near::shm {

namespace {

/// A sender asks for a lane again after this many messages through the queue.
constexpr std::uint32_t ask_again = 4096;
/// A lane may be recalled if it has carried fewer messages since lanes were last compared.
constexpr std::uint64_t worth_keeping = 64;

void send_marker(Peer& peer, InternalHandler what, const LaneGrant& grant) {
  post_control(peer, static_cast<std::uint8_t>(what), {}, &grant, sizeof grant);
}

void grant(LaneIn& lane, Peer& to) {
  lane.from = &to;
  lane.next = nullptr;
  lane.reader.expect(to.row);
  base::log(base::Level::debug, "lane {} goes to rank {}", lane.index, memory::process_in(to.row).rank);
  NEAR_KILL_POINT("lane-chosen");
  send_marker(to, InternalHandler::lane_granted, {lane.index, lane.reader.position()});
}

void close_lane(LaneIn& lane) {
  lane.from->lane_in = nullptr;
  lane.from->receive.lane = nullptr;
  lane.from = nullptr;
  lane.open.store_relaxed(0);
  engine().open_lanes &= ~(1u << lane.index);
}

} // namespace

void count_queued(Peer& peer) {
  Engine& self = engine();
  if (++peer.queued <= peer.ask_after || peer.lane_asked) [[likely]]
    return;
  peer.queued = 0;
  peer.ask_after = ask_again;
  if (peer.row == self.row || peer.control->lane_count == 0) return;
  peer.lane_asked = true; // until the answer
  transport::answers_due.bump_relaxed(1);
  send_marker(peer, InternalHandler::lane_request, {});
  NEAR_KILL_POINT("lane-requested");
}

void handle_lane_request(Arrival& arrival) {
  Engine& self = engine();
  Peer& from = sender_of(arrival);
  LaneIn* coldest = nullptr;
  std::uint64_t least = worth_keeping;
  for (std::uint32_t i = 0; i < self.lane_count; ++i) {
    LaneIn& lane = self.lanes[i];
    if (lane.from != nullptr && has_left(*lane.from) && !lane.reader.has_message()) {
      close_lane(lane);
      lane_is_free(lane); // the next pair may already wait for it
    }
    if (lane.from == nullptr) {
      if (!lane.built && !build_lane(lane)) continue;
      grant(lane, from);
      return;
    }
    std::uint64_t carried = lane.reader.position() - lane.cold_at;
    lane.cold_at = lane.reader.position();
    if (lane.open.load_relaxed() != 0 && lane.next == nullptr && carried < least) {
      least = carried;
      coldest = &lane;
    }
  }
  if (coldest != nullptr) {
    coldest->next = &from;
    send_marker(*coldest->from, InternalHandler::lane_recall, {coldest->index, 0});
    NEAR_KILL_POINT("lane-recalled");
    return;
  }
  send_marker(from, InternalHandler::lane_granted, {most_lanes, 0}); // no lane is free
  NEAR_KILL_POINT("lane-denied");
}

void handle_lane_granted(Arrival& arrival) {
  const auto& granted = *reinterpret_cast<const LaneGrant*>(arrival.payload);
  Peer& peer = sender_of(arrival);
  NEAR_KILL_POINT("lane-grant-read");
  peer.lane_asked = false;
  transport::answers_due.bump_relaxed(-1u);
  peer.queued = 0;
  if (granted.lane < most_lanes) send_marker(peer, InternalHandler::lane_switch, granted);
}

void handle_lane_switch(Arrival& arrival) {
  const auto& granted = *reinterpret_cast<const LaneGrant*>(arrival.payload);
  Engine& self = engine();
  LaneIn& lane = self.lanes[granted.lane];
  NEAR_KILL_POINT("lane-switch-read");
  lane.cold_at = lane.reader.position();
  lane.open.store_relaxed(1);
  sender_of(arrival).lane_in = &lane;
  sender_of(arrival).receive.lane = &lane.reader;
  self.open_lanes |= 1u << lane.index;
}

void handle_lane_recall(Arrival& arrival) {
  const auto& recalled = *reinterpret_cast<const LaneGrant*>(arrival.payload);
  NEAR_KILL_POINT("lane-recall-read");
  send_marker(sender_of(arrival), InternalHandler::lane_return, recalled);
}

void handle_lane_return(Arrival& arrival) {
  NEAR_KILL_POINT("lane-return-read");
  close_lane(*sender_of(arrival).lane_in);
}

void lane_is_free(LaneIn& lane) {
  NEAR_KILL_POINT("lane-drained");
  if (lane.next != nullptr) grant(lane, *lane.next);
}

void marker_sent(Peer& peer, const MessageHeader& header) {
  if (header.handler == static_cast<std::uint8_t>(InternalHandler::lane_switch)) {
    const auto& granted = *reinterpret_cast<const LaneGrant*>(header.payload);
    auto* ring =
        reinterpret_cast<std::byte*>(peer.lanes) + granted.lane * queue::LaneRing<>::bytes(lane_slots);
    peer.send.lane = queue::LaneWriter<>(reinterpret_cast<queue::LaneRing<>*>(ring), lane_slots, engine().row,
                                         granted.position);
    NEAR_KILL_POINT("lane-switched");
    peer.lane_open = true;
  } else if (header.handler == static_cast<std::uint8_t>(InternalHandler::lane_return)) {
    NEAR_KILL_POINT("lane-returned");
    peer.lane_open = false;
    stop_fast_sends(peer);
  }
}

} // namespace near::shm
