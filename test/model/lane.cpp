// Lanes: the messages of a writer arrive in order and whole, also after the lane has changed hands.
#include "structures.h"

namespace {

using namespace near::model;
using Ring = near::queue::LaneRing<Weak>;
using near::queue::LaneReader;
using near::queue::LaneWriter;

struct ModelLane {
  ModelLane(Stage& stage, std::uint64_t count) : memory(stage, count, "lane"), slots(count) {
    stage.name(memory->consumed, "consumed");
    reader.attach(memory.get(), slots);
  }
  LaneWriter<Weak> writer(std::uint32_t self, std::uint64_t position = 0) {
    return {memory.get(), slots, self, position};
  }
  RingMemory<Ring> memory;
  std::uint64_t slots;
  LaneReader<Weak> reader;
};

void send(LaneWriter<Weak>& writer, std::uint32_t self, std::uint32_t number) {
  Claim claim;
  until([&] { return static_cast<bool>(claim = writer.claim()); });
  write_message(claim, self, number);
  claim.commit();
}

bool take(ModelLane& lane, Inbox& inbox, std::uint32_t writer) {
  const std::byte* body = lane.reader.front();
  if (body == nullptr) return false;
  inbox.take(body, writer);
  lane.reader.pop();
  return true;
}

void one_writer(Stage& stage, std::uint64_t slots, std::uint32_t messages) {
  ModelLane lane(stage, slots);
  lane.reader.expect(0);
  Inbox inbox;
  stage.thread("writer", [&lane, messages] {
    auto writer = lane.writer(0);
    for (std::uint32_t number = 0; number < messages; ++number) send(writer, 0, number);
  });
  stage.thread("reader", [&] {
    while (inbox.count(0) < messages) until([&] { return take(lane, inbox, 0); });
  });
  stage.go();
  require(lane.reader.front() == nullptr, "nothing arrives twice");
}

MODEL_SCENARIO(lane, messages_wrap_round_in_order, {{4, 3, 1, 0}}) { one_writer(stage, 2, 5); }
MODEL_SCENARIO(lane, the_writer_is_told_of_space_in_steps, {{2, 2, 1, 0}}) { one_writer(stage, 8, 18); }

MODEL_SCENARIO(lane, one_read_of_the_counter_is_good_for_several_claims, {{3, 3, 1, 0}}) {
  ModelLane lane(stage, 4);
  lane.reader.expect(0);
  Inbox inbox;
  constexpr std::uint32_t messages = 9;
  stage.thread("writer", [&] {
    auto writer = lane.writer(0);
    std::uint32_t number = 0;
    while (number < messages) {
      until([&] { return writer.find_free(3) != 0; });
      // The last claim takes the slow path, for which the remaining slots are given up.
      for (bool again = true; again && number < messages; ++number) {
        again = writer.left() > 1;
        if (!again) writer.give_up_left();
        send(writer, 0, number);
      }
    }
  });
  stage.thread("reader", [&] {
    while (inbox.count(0) < messages) until([&] { return take(lane, inbox, 0); });
  });
  stage.go();
  require(lane.reader.front() == nullptr, "nothing arrives twice");
}

MODEL_SCENARIO(lane, an_abandoned_claim_is_skipped, {{4, 3, 1, 0}}) {
  ModelLane lane(stage, 2);
  lane.reader.expect(0);
  Inbox inbox;
  stage.thread("writer", [&] {
    auto writer = lane.writer(0);
    for (std::uint32_t number = 0; number < 2; ++number) {
      {
        Claim dropped;
        until([&] { return static_cast<bool>(dropped = writer.claim()); });
        put(dropped.body(), ~0u);
      }
      send(writer, 0, number);
    }
  });
  stage.thread("reader", [&] {
    while (inbox.count(0) < 2) until([&] { return take(lane, inbox, 0); });
  });
  stage.go();
  require(lane.reader.front() == nullptr, "nothing arrives twice");
}

MODEL_SCENARIO(lane, it_changes_hands_when_it_is_drained, {{3, 2, 1, 0}}) {
  // The reader grants its current position; the word that carries it stands for the message of the grant.
  constexpr std::uint32_t each = 3;
  constexpr std::uint64_t not_yet = ~std::uint64_t{0};
  ModelLane lane(stage, 2);
  lane.reader.expect(0);
  Weak::Atomic<std::uint64_t> grant{not_yet};
  stage.name(grant, "grant");
  Inbox inbox;
  stage.thread("first", [&] {
    auto writer = lane.writer(0);
    for (std::uint32_t number = 0; number < each; ++number) send(writer, 0, number);
  });
  stage.thread("second", [&] {
    std::uint64_t position = not_yet;
    until([&] { return (position = grant.load_acquire()) != not_yet; });
    auto writer = lane.writer(1, position);
    for (std::uint32_t number = 0; number < each; ++number) send(writer, 1, number);
  });
  stage.thread("reader", [&] {
    while (inbox.count(0) < each) until([&] { return take(lane, inbox, 0); });
    lane.reader.expect(1);
    grant.store_release(lane.reader.position());
    while (inbox.count(1) < each) until([&] { return take(lane, inbox, 1); });
  });
  stage.go();
  require(lane.reader.front() == nullptr, "nothing arrives twice");
}

MODEL_SCENARIO(lane, a_dead_writer_leaves_an_empty_lane, {{3, 2, 1, 1}}) {
  ModelLane lane(stage, 2);
  lane.reader.expect(0);
  Inbox inbox;
  auto writer = stage.mortal("writer", [&] {
    auto end = lane.writer(0);
    for (std::uint32_t number = 0; number < 3; ++number) send(end, 0, number);
  });
  stage.thread("reader", [&] {
    for (bool last = false; !last;)
      until([&] {
        bool over = stage.over({writer});
        if (take(lane, inbox, 0)) return true;
        return last = over;
      });
    require(!lane.reader.has_message(), "the lane of a dead writer is empty");
  });
  stage.go();
  require(stage.killed(writer) || inbox.count(0) == 3, "a writer that was not killed has sent all");
}

} // namespace
