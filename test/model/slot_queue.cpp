// The receive queue: every message of a living producer arrives once, whole and in order, even if others die.
#include "structures.h"

namespace {

using namespace near::model;
using near::queue::Producer;

constexpr auto nobody_is_dead = [](std::uint32_t) { return false; };

Claim claim_slot(Producer<Weak>& producer) {
  Claim claim;
  until([&] { return static_cast<bool>(claim = producer.claim()); });
  return claim;
}

/// Sends `messages`; waits while the queue is full.
void send_all(ModelQueue& queue, std::uint32_t self, std::uint32_t messages) {
  auto producer = queue.producer(self);
  for (std::uint32_t number = 0; number < messages; ++number) {
    Claim claim = claim_slot(producer);
    write_message(claim, self, number);
    claim.commit();
  }
}

template <class IsDead>
bool receive_one(ModelQueue& queue, Inbox& inbox, IsDead&& is_dead) {
  auto entry = queue.consumer.front(is_dead);
  if (entry.body == nullptr) return false;
  inbox.take(entry.body, entry.claimer);
  queue.consumer.pop();
  return true;
}

/// Receives `messages` messages.
void receive_all(ModelQueue& queue, Inbox& inbox, std::uint32_t messages) {
  for (std::uint32_t received = 0; received < messages; ++received)
    until([&] { return receive_one(queue, inbox, nobody_is_dead); });
}

MODEL_SCENARIO(slot_queue, two_producers_share_two_slots, {{2, 2, 0, 0}}) {
  ModelQueue queue(stage, 2);
  Inbox inbox;
  stage.thread("producer of two", [&queue] { send_all(queue, 0, 2); });
  stage.thread("producer of one", [&queue] { send_all(queue, 1, 1); });
  stage.thread("consumer", [&] { receive_all(queue, inbox, 3); });
  stage.go();
  require(queue.consumer.front(nobody_is_dead).body == nullptr, "nothing arrives twice");
}

MODEL_SCENARIO(slot_queue, three_producers_wrap_round, {{1, 0, 1, 0}, 40'000}) {
  ModelQueue queue(stage, 2);
  Inbox inbox;
  for (std::uint32_t self : {0u, 1u, 2u})
    stage.thread("producer " + std::to_string(self), [&queue, self] { send_all(queue, self, 2); });
  stage.thread("consumer", [&] { receive_all(queue, inbox, 6); });
  stage.go();
  require(queue.consumer.front(nobody_is_dead).body == nullptr, "nothing arrives twice");
}

MODEL_SCENARIO(slot_queue, one_producer_wraps_round_twice, {{3, 2, 1, 0}}) {
  ModelQueue queue(stage, 2);
  Inbox inbox;
  stage.thread("producer", [&queue] { send_all(queue, 0, 5); });
  stage.thread("consumer", [&] { receive_all(queue, inbox, 5); });
  stage.go();
}

MODEL_SCENARIO(slot_queue, an_abandoned_claim_is_skipped, {{2, 0, 0, 0}}) {
  ModelQueue queue(stage, 2);
  Inbox inbox;
  stage.thread("hesitant", [&] {
    auto producer = queue.producer(0);
    for (std::uint32_t number = 0; number < 2; ++number) {
      {
        Claim dropped = claim_slot(producer);
        put(dropped.body(), ~0u); // begun, then abandoned
      }
      Claim claim = claim_slot(producer);
      write_message(claim, 0, number);
      claim.commit();
    }
  });
  stage.thread("other", [&queue] { send_all(queue, 1, 1); });
  stage.thread("consumer", [&] { receive_all(queue, inbox, 3); });
  stage.go();
  require(queue.consumer.front(nobody_is_dead).body == nullptr, "nothing arrives twice");
}

MODEL_SCENARIO(slot_queue, a_producer_that_dies_anywhere_blocks_no_other, {{1, 1, 0, 1}}) {
  ModelQueue queue(stage, 2);
  Inbox inbox;
  Weak::Atomic<std::uint32_t> phase{0};
  stage.name(phase, "phase");
  auto mortal = stage.mortal("mortal", [&queue] { send_all(queue, 0, 2); });
  auto living = stage.thread("living", [&queue] { send_all(queue, 1, 2); });
  auto launcher = stage.thread("launcher", [&] {
    if (stage.await_end(mortal)) phase.store_release(1); // as mpiexec marks dead processes, after waitpid
  });
  stage.thread("consumer", [&] {
    auto is_dead = [&](std::uint32_t who) { return who == 0 && phase.load_acquire() != 0; };
    for (bool last = false; !last;)
      until([&] {
        bool all_over = stage.over({mortal, living, launcher}); // if true, this poll is the last
        if (receive_one(queue, inbox, is_dead)) return true;
        return last = all_over;
      });
  });
  stage.go();
  require(inbox.count(1) == 2, "the messages of the living all arrive");
  require(stage.killed(mortal) || inbox.count(0) == 2,
          "the messages of a producer that was not killed all arrive");
}

} // namespace
