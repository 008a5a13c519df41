// The descriptor of an RTS: either the sender cancels the RTS or its receiver accepts it, and only that process
// uses the buffer. A FIN that finds no slot is left in the descriptor.
#include "structures.h"

#include "queue/flow_control.h"
#include "queue/rts.h"

namespace {

using namespace near::model;
using Word = Weak::Atomic<std::uint32_t>;
using Descriptor = near::queue::RtsDescriptor<Weak>;

constexpr std::uint32_t none = ~0u;

/// Stands for a message of the queue: it publishes earlier stores.
struct Mail {
  Mail(Stage& stage, const char* name) { stage.name(word, name); }
  void send(std::uint32_t what) { word.store_release(what); }
  std::uint32_t receive() {
    std::uint32_t what = none;
    until([&] { return (what = word.load_acquire()) != none; });
    return what;
  }
  Word word{none};
};

MODEL_SCENARIO(rts, cancel_or_accept_wins_never_both, {{4, 4, 2, 0}}) {
  Descriptor descriptor;
  Mail rts(stage, "rts"), finished(stage, "finished");
  std::uint32_t buffer = 0;
  bool cancelled = false, accepted = false;
  stage.thread("sender", [&] {
    put(&buffer, 1u);
    rts.send(descriptor.announce());
    cancelled = descriptor.cancel();
    if (!cancelled) finished.receive();
    descriptor.retire();
    put(&buffer, 2u); // belongs to the sender again
  });
  stage.thread("receiver", [&] {
    std::uint32_t generation = rts.receive();
    if (!descriptor.is_live(generation)) return;
    accepted = descriptor.accept(generation);
    if (!accepted) return;
    require(get<std::uint32_t>(&buffer) == 1, "the receiver reads the data of the message");
    finished.send(1);
  });
  stage.go();
  require(cancelled != accepted, "one of cancel and accept wins");
}

MODEL_SCENARIO(rts, an_rts_of_an_earlier_message_is_not_accepted, {{3, 3, 1, 0}}) {
  // The first RTS is cancelled or accepted; then its descriptor serves another message. The receiver uses the
  // first RTS late and twice.
  Descriptor descriptor;
  Mail first(stage, "first rts"), second(stage, "second rts"), finished(stage, "finished");
  std::uint32_t buffers[2] = {};
  std::uint32_t accepted[2] = {};
  bool cancelled = false;
  stage.thread("sender", [&] {
    put(&buffers[0], 1u);
    first.send(descriptor.announce());
    cancelled = descriptor.cancel();
    if (!cancelled) finished.receive();
    descriptor.retire();
    put(&buffers[0], 3u);
    put(&buffers[1], 2u);
    second.send(descriptor.announce());
  });
  stage.thread("receiver", [&] {
    std::uint32_t old = first.receive();
    if (descriptor.accept(old)) {
      ++accepted[0];
      require(get<std::uint32_t>(&buffers[0]) == 1, "the receiver reads the data of the message");
      finished.send(1);
    }
    std::uint32_t young = second.receive();
    require(!descriptor.accept(old), "an old RTS is not accepted");
    require(descriptor.is_live(young), "only the receiver could have accepted it");
    if (descriptor.accept(young)) {
      ++accepted[1];
      require(get<std::uint32_t>(&buffers[1]) == 2, "the receiver reads the data of the message");
    }
  });
  stage.go();
  require(accepted[0] == (cancelled ? 0 : 1), "the first RTS is accepted or cancelled");
  require(accepted[1] == 1, "the second RTS is accepted");
}

/// Meanings of the receiver's queue entries for the sender.
enum : std::uint32_t { plain, fin, look };

/// Receivers that find no slot for their FINs leave them in the descriptors and do not try again. The sender,
/// which only waits for messages, gets all its buffers back. The receivers take the messages in turn.
void fins_are_left(Stage& stage, std::uint32_t messages, bool fences, std::uint32_t receivers = 1) {
  using Flow = near::queue::FlowControl<Weak, WeakSystem>;
  ModelQueue queue(stage, 2);
  Weak::Atomic<std::uint64_t> waiters{0}, left{0};
  stage.name(waiters, "waiters");
  stage.name(left, "left");
  std::array<Descriptor, 2> descriptors;
  std::array<std::uint32_t, 2> buffer{};
  Mail rts(stage, "rts");
  std::uint32_t settled = 0;
  stage.thread("sender", [&, messages, fences] {
    for (std::uint32_t i = 0; i < messages; ++i) {
      put(&buffer[i], 1u);
      require(descriptors[i].announce() == 0, "the first generation");
    }
    rts.send(0);
    std::array<bool, 2> done{};
    auto settle = [&](std::uint32_t i) {
      require(!done[i], "a message is received once");
      done[i] = true;
      ++settled;
      descriptors[i].retire();
      put(&buffer[i], 2u); // belongs to the sender again
    };
    auto take_fins = [&] {
      if (left.load_relaxed() == 0) return;
      Descriptor::take_fins(
          left, [&](std::uint64_t offset) -> Descriptor& { return descriptors[offset - 1]; },
          [&](const near::queue::LeftFin& fin) {
            require(fin.cookie < messages && fin.outcome == 7 + fin.cookie, "the FIN is the receiver's");
            settle(static_cast<std::uint32_t>(fin.cookie));
          });
    };
    while (settled < messages) {
      std::uint32_t what = plain, which = 0;
      until([&] {
        auto entry = queue.consumer.front([](std::uint32_t) { return false; });
        if (entry.body == nullptr) return false;
        what = get<std::uint32_t>(entry.body);
        which = get<std::uint32_t>(entry.body + 4);
        queue.consumer.pop();
        return true;
      });
      if (what == fin) settle(which);
      if (what == look) take_fins();
      Flow::wake_waiters(waiters, fences, [&](std::uint64_t) { take_fins(); });
    }
  });
  for (std::uint32_t self = 0; self < receivers; ++self)
    stage.thread("receiver", [&, self, messages, fences, receivers] {
      auto producer = queue.producer(self + 1);
      auto send = [&](std::uint32_t what, std::uint32_t which) {
        auto claim = producer.claim();
        if (!claim) return false;
        put(claim.body(), what);
        put(claim.body() + 4, which);
        claim.commit();
        return true;
      };
      send(plain, 0); // together, the receivers fill the queue
      if (receivers == 1) send(plain, 0);
      rts.receive();
      for (std::uint32_t i = self; i < messages; i += receivers) {
        require(descriptors[i].accept(0), "nobody cancels it");
        require(get<std::uint32_t>(&buffer[i]) == 1, "the receiver reads the data of the message");
        if (send(fin, i)) continue;
        if (!descriptors[i].leave_fin(left, i + 1, {i, 7 + i})) continue;
        Flow::add_waiter(waiters, 1);
        Flow::before_recheck(fences);
        send(look, 0);
      }
    });
  stage.go();
  require(settled == messages, "every buffer comes back");
}

MODEL_SCENARIO(rts, a_fin_without_a_slot_is_found_with_a_barrier_of_all, {{4, 2, 1, 0}}) {
  fins_are_left(stage, 1, false);
}
MODEL_SCENARIO(rts, a_fin_without_a_slot_is_found_with_fences, {{4, 2, 1, 0}}) {
  fins_are_left(stage, 1, true);
}
MODEL_SCENARIO(rts, two_fins_without_a_slot_are_found, {{3, 2, 1, 0}}) { fins_are_left(stage, 2, false); }
MODEL_SCENARIO(rts, fins_of_two_receivers_without_a_slot_are_found, {{2, 1, 0, 0}}) {
  fins_are_left(stage, 2, false, 2);
}

MODEL_SCENARIO(rts, fins_are_left_while_others_are_taken, {{3, 1, 0, 0}}) {
  // The sender polls its stack of FINs and announces its next message in the descriptor that it has just
  // taken from there, while another FIN is being pushed.
  constexpr std::uint32_t messages = 3;
  Weak::Atomic<std::uint64_t> left{0};
  stage.name(left, "left");
  std::array<Descriptor, 2> descriptors;
  std::array<std::uint32_t, 2> buffer{};
  Mail first(stage, "first rts"), again(stage, "rts of the descriptor in use again");
  std::uint32_t settled = 0, again_at = 0;
  stage.thread("sender", [&] {
    auto announce = [&](std::uint32_t i) {
      put(&buffer[i], 1u);
      return descriptors[i].announce();
    };
    announce(0);
    announce(1);
    first.send(0);
    while (settled < messages) {
      until([&] { return left.load_relaxed() != 0; });
      std::array<std::uint32_t, 2> taken{};
      std::uint32_t count = 0;
      Descriptor::take_fins(
          left, [&](std::uint64_t offset) -> Descriptor& { return descriptors[offset - 1]; },
          [&](const near::queue::LeftFin& fin) {
            require(count < 2 && fin.cookie < 2 && fin.outcome == 7 + fin.cookie,
                    "the FIN is the receiver's");
            descriptors[fin.cookie].retire();
            taken[count++] = static_cast<std::uint32_t>(fin.cookie);
          });
      for (std::uint32_t each = 0; each < count; ++each) {
        put(&buffer[taken[each]], 2u); // belongs to the sender again
        if (settled++ != 0) continue;
        put(&again_at, taken[each]);
        again.send(announce(taken[each]));
      }
    }
  });
  auto receive = [&](std::uint32_t i, std::uint32_t generation) {
    require(descriptors[i].accept(generation), "nobody cancels it");
    require(get<std::uint32_t>(&buffer[i]) == 1, "the receiver reads the data of the message");
    descriptors[i].leave_fin(left, i + 1, {i, 7 + i});
  };
  stage.thread("receiver of two", [&] {
    first.receive();
    receive(0, 0);
    const std::uint32_t generation = again.receive();
    receive(get<std::uint32_t>(&again_at), generation);
  });
  stage.thread("receiver of one", [&] {
    first.receive();
    receive(1, 0);
  });
  stage.go();
  require(settled == messages, "every buffer comes back");
}

MODEL_SCENARIO(rts, a_receiver_that_dies_while_it_leaves_a_fin_hides_no_other, {{3, 2, 0, 1}}) {
  Weak::Atomic<std::uint64_t> left{0};
  stage.name(left, "left");
  std::array<Descriptor, 2> descriptors;
  std::array<std::uint32_t, 2> buffer{};
  std::array<bool, 2> settled{};
  for (std::uint32_t i = 0; i < 2; ++i) {
    buffer[i] = 1;
    descriptors[i].announce();
  }
  auto receive = [&](std::uint32_t i) {
    require(descriptors[i].accept(0), "nobody cancels it");
    require(get<std::uint32_t>(&buffer[i]) == 1, "the receiver reads the data of the message");
    descriptors[i].leave_fin(left, i + 1, {i, 7 + i});
  };
  auto mortal = stage.mortal("mortal", [&] { receive(0); });
  auto living = stage.thread("living", [&] { receive(1); });
  stage.thread("sender", [&] {
    for (bool last = false; !last;)
      until([&] {
        const bool all_over = stage.over({mortal, living}); // if true, this poll is the last one
        if (left.load_relaxed() == 0) return last = all_over;
        Descriptor::take_fins(
            left, [&](std::uint64_t offset) -> Descriptor& { return descriptors[offset - 1]; },
            [&](const near::queue::LeftFin& fin) {
              require(fin.cookie < 2 && fin.outcome == 7 + fin.cookie,
                      "a FIN is on the stack only when it is whole");
              require(!settled[fin.cookie], "a message is received once");
              settled[fin.cookie] = true;
              put(&buffer[fin.cookie], 2u); // belongs to the sender again
            });
        return true;
      });
  });
  stage.go();
  require(settled[1], "the FIN of the living arrives");
  require(stage.killed(mortal) || settled[0], "the FIN of a receiver that was not killed arrives");
}

} // namespace
