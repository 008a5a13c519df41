// SWITCH: the messages of a pair stay in order while it moves from the queue to a lane and back. The rings
// are those of the library; the switch between channels is modelled here after src/transport (claim_channel,
// take_from_lane, take_from_queue, lanes.cpp).
#include "structures.h"

namespace {

using namespace near::model;
using near::queue::LaneReader;
using near::queue::LaneWriter;

enum Kind : std::uint32_t { message, to_lane, to_queue };
constexpr std::size_t kind_at = 8; // in a body

/// The receiver's state: its queue, its lane, and the sender that currently owns the lane.
struct Receiver {
  Receiver(Stage& stage) : queue(stage, 2), ring(stage, 2, "lane") {
    stage.name(ring->consumed, "consumed");
    lane.attach(ring.get(), 2);
    lane.expect(0);
  }
  bool take_from_lane() {
    const std::byte* body = lane.front();
    if (body == nullptr) return false;
    auto kind = get<std::uint32_t>(body + kind_at);
    inbox.take(body, owner);
    lane.pop();
    if (kind == to_queue) lane_open = false;
    return true;
  }
  bool take_from_queue() {
    auto entry = queue.consumer.front([](std::uint32_t) { return false; });
    if (entry.body == nullptr) return false;
    auto number = get<std::uint32_t>(entry.body) & 0xffff;
    // The owner has returned from its lane; its remaining messages there come first.
    if (lane_open && entry.claimer == owner && number != inbox.count(owner))
      while (lane_open && take_from_lane()) {}
    auto kind = get<std::uint32_t>(entry.body + kind_at);
    inbox.take(entry.body, entry.claimer);
    queue.consumer.pop();
    if (kind == to_lane) lane_open = true;
    return true;
  }
  bool progress() { return (lane_open && take_from_lane()) || take_from_queue(); }

  ModelQueue queue;
  RingMemory<near::queue::LaneRing<Weak>> ring;
  LaneReader<Weak> lane;
  Inbox inbox;
  std::uint32_t owner = 0;
  bool lane_open = false;
};

/// A sender with its two channels.
struct Sender {
  Sender(Receiver& receiver, std::uint32_t number)
      : to(receiver), self(number), producer(receiver.queue.producer(number)) {}
  void send(Kind kind) {
    Claim claim;
    until([&] { return static_cast<bool>(claim = lane_open ? lane.claim() : producer.claim()); });
    put(claim.body() + kind_at, static_cast<std::uint32_t>(kind));
    write_message(claim, self, next++);
    claim.commit();
  }
  /// The marker is the last message in the channel that the sender leaves.
  void turn_to_lane(std::uint64_t position) {
    send(to_lane);
    lane = LaneWriter<Weak>(to.ring.get(), 2, self, position);
    lane_open = true;
  }
  void turn_to_queue() {
    send(to_queue);
    lane_open = false;
  }

  Receiver& to;
  std::uint32_t self, next = 0;
  near::queue::Producer<Weak> producer;
  LaneWriter<Weak> lane;
  bool lane_open = false;
};

MODEL_SCENARIO(channel_switch, a_pair_keeps_its_order_to_the_lane_and_back, {{3, 2, 1, 0}}) {
  Receiver receiver(stage);
  constexpr std::uint32_t all = 7;
  stage.thread("sender", [&] {
    Sender sender(receiver, 0);
    sender.send(message);
    sender.turn_to_lane(0);
    for (int i = 0; i < 3; ++i) sender.send(message);
    sender.turn_to_queue();
    sender.send(message);
  });
  stage.thread("receiver", [&] {
    while (receiver.inbox.count(0) < all) until([&] { return receiver.progress(); });
  });
  stage.go();
}

MODEL_SCENARIO(channel_switch, a_drained_lane_goes_to_the_next_pair, {{1, 1, 0, 0}}) {
  constexpr std::uint32_t all = 4;
  constexpr std::uint64_t not_yet = ~std::uint64_t{0};
  Receiver receiver(stage);
  Weak::Atomic<std::uint64_t> granted{not_yet};
  stage.name(granted, "granted");
  stage.thread("first", [&] {
    Sender sender(receiver, 0);
    sender.turn_to_lane(0);
    sender.send(message);
    sender.turn_to_queue();
    sender.send(message);
  });
  stage.thread("second", [&] {
    Sender sender(receiver, 1);
    sender.send(message);
    std::uint64_t position = not_yet;
    until([&] { return (position = granted.load_acquire()) != not_yet; });
    sender.turn_to_lane(position);
    sender.send(message);
    sender.send(message);
  });
  stage.thread("receiver", [&] {
    bool was_open = false;
    while (receiver.inbox.count(0) < all || receiver.inbox.count(1) < all) {
      until([&] { return receiver.progress(); });
      if (was_open && !receiver.lane_open && receiver.owner == 0) {
        receiver.owner = 1;
        receiver.lane.expect(1);
        granted.store_release(receiver.lane.position());
      }
      was_open = receiver.lane_open;
    }
  });
  stage.go();
}

} // namespace
