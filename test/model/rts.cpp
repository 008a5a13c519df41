// Offers: either the sender withdraws an offer or its receiver takes it, and only that one uses the buffer.
#include "structures.h"

#include "queue/flow_control.h"
#include "queue/rts.h"

namespace {

using namespace near::model;
using Word = Weak::Atomic<std::uint32_t>;
using Offer = near::queue::RtsDescriptor<Weak>;

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

MODEL_SCENARIO(offer, cancel_or_accept_wins_never_both, {{4, 4, 2, 0}}) {
  Offer offer;
  Mail rts(stage, "rts"), finished(stage, "finished");
  std::uint32_t buffer = 0;
  bool cancelled = false, accepted = false;
  stage.thread("sender", [&] {
    put(&buffer, 1u);
    rts.send(offer.announce());
    cancelled = offer.cancel();
    if (!cancelled) finished.receive();
    offer.retire();
    put(&buffer, 2u); // belongs to the sender again
  });
  stage.thread("receiver", [&] {
    std::uint32_t generation = rts.receive();
    if (!offer.is_live(generation)) return;
    accepted = offer.accept(generation);
    if (!accepted) return;
    require(get<std::uint32_t>(&buffer) == 1, "the receiver reads what was offered");
    finished.send(1);
  });
  stage.go();
  require(cancelled != accepted, "one of cancel and accept wins");
}

MODEL_SCENARIO(offer, an_rts_of_an_earlier_offer_takes_nothing, {{3, 3, 1, 0}}) {
  // The first offer is withdrawn or taken; then its descriptor serves another one. The RTS of the first offer
  // is used late and twice.
  Offer offer;
  Mail first(stage, "first rts"), second(stage, "second rts"), finished(stage, "finished");
  std::uint32_t buffers[2] = {};
  std::uint32_t taken[2] = {};
  bool cancelled = false;
  stage.thread("sender", [&] {
    put(&buffers[0], 1u);
    first.send(offer.announce());
    cancelled = offer.cancel();
    if (!cancelled) finished.receive();
    offer.retire();
    put(&buffers[0], 3u);
    put(&buffers[1], 2u);
    second.send(offer.announce());
  });
  stage.thread("receiver", [&] {
    std::uint32_t old = first.receive();
    if (offer.accept(old)) {
      ++taken[0];
      require(get<std::uint32_t>(&buffers[0]) == 1, "the receiver reads what was offered");
      finished.send(1);
    }
    std::uint32_t young = second.receive();
    require(!offer.accept(old), "an old rts takes nothing");
    require(offer.is_live(young), "nobody but the receiver could have taken it");
    if (offer.accept(young)) {
      ++taken[1];
      require(get<std::uint32_t>(&buffers[1]) == 2, "the receiver reads what was offered");
    }
  });
  stage.go();
  require(taken[0] == (cancelled ? 0 : 1), "the first offer is taken or withdrawn");
  require(taken[1] == 1, "the second offer is taken");
}

/// Meanings of the receiver's queue entries for the sender.
enum : std::uint32_t { plain, fin, look };

/// Receivers that find no slot for their FINs leave them in the descriptors and do not try again. The sender,
/// which only waits for messages, gets all its buffers back. Offers go to the receivers in turn.
void fins_are_left(Stage& stage, std::uint32_t offers, bool fences, std::uint32_t receivers = 1) {
  using Flow = near::queue::FlowControl<Weak, WeakSystem>;
  ModelQueue queue(stage, 2);
  Weak::Atomic<std::uint64_t> waiters{0}, left{0};
  stage.name(waiters, "waiters");
  stage.name(left, "left");
  std::array<Offer, 2> offer;
  std::array<std::uint32_t, 2> buffer{};
  Mail rts(stage, "rts");
  std::uint32_t settled = 0;
  stage.thread("sender", [&, offers, fences] {
    for (std::uint32_t i = 0; i < offers; ++i) {
      put(&buffer[i], 1u);
      require(offer[i].announce() == 0, "the first generation");
    }
    rts.send(0);
    std::array<bool, 2> done{};
    auto settle = [&](std::uint32_t i) {
      require(!done[i], "a message is received once");
      done[i] = true;
      ++settled;
      offer[i].retire();
      put(&buffer[i], 2u); // belongs to the sender again
    };
    auto take_fins = [&] {
      if (left.load_relaxed() == 0) return;
      Offer::take_fins(
          left, [&](std::uint64_t offset) -> Offer& { return offer[offset - 1]; },
          [&](const near::queue::LeftFin& fin) {
            require(fin.cookie < offers && fin.outcome == 7 + fin.cookie, "the FIN is the receiver's");
            settle(static_cast<std::uint32_t>(fin.cookie));
          });
    };
    while (settled < offers) {
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
    stage.thread("receiver", [&, self, offers, fences, receivers] {
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
      for (std::uint32_t i = self; i < offers; i += receivers) {
        require(offer[i].accept(0), "nobody withdraws it");
        require(get<std::uint32_t>(&buffer[i]) == 1, "the receiver reads what was offered");
        if (send(fin, i)) continue;
        if (!offer[i].leave_fin(left, i + 1, {i, 7 + i})) continue;
        Flow::add_waiter(waiters, 1);
        Flow::before_recheck(fences);
        send(look, 0);
      }
    });
  stage.go();
  require(settled == offers, "every buffer comes back");
}

MODEL_SCENARIO(offer, a_fin_without_a_slot_is_found_with_a_barrier_of_all, {{4, 2, 1, 0}}) {
  fins_are_left(stage, 1, false);
}
MODEL_SCENARIO(offer, a_fin_without_a_slot_is_found_with_fences, {{4, 2, 1, 0}}) {
  fins_are_left(stage, 1, true);
}
MODEL_SCENARIO(offer, two_fins_without_a_slot_are_found, {{3, 2, 1, 0}}) { fins_are_left(stage, 2, false); }
MODEL_SCENARIO(offer, fins_of_two_receivers_without_a_slot_are_found, {{2, 1, 0, 0}}) {
  fins_are_left(stage, 2, false, 2);
}

MODEL_SCENARIO(offer, fins_are_left_while_others_are_taken, {{3, 1, 0, 0}}) {
  // The sender polls its stack of FINs and announces its next message in the descriptor that it has just
  // taken from there, while another FIN is being pushed.
  constexpr std::uint32_t messages = 3;
  Weak::Atomic<std::uint64_t> left{0};
  stage.name(left, "left");
  std::array<Offer, 2> offer;
  std::array<std::uint32_t, 2> buffer{};
  Mail first(stage, "first rts"), again(stage, "rts of the descriptor in use again");
  std::uint32_t settled = 0, again_at = 0;
  stage.thread("sender", [&] {
    auto announce = [&](std::uint32_t i) {
      put(&buffer[i], 1u);
      return offer[i].announce();
    };
    announce(0);
    announce(1);
    first.send(0);
    while (settled < messages) {
      until([&] { return left.load_relaxed() != 0; });
      std::array<std::uint32_t, 2> taken{};
      std::uint32_t count = 0;
      Offer::take_fins(
          left, [&](std::uint64_t offset) -> Offer& { return offer[offset - 1]; },
          [&](const near::queue::LeftFin& fin) {
            require(count < 2 && fin.cookie < 2 && fin.outcome == 7 + fin.cookie,
                    "the FIN is the receiver's");
            offer[fin.cookie].retire();
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
    require(offer[i].accept(generation), "nobody withdraws it");
    require(get<std::uint32_t>(&buffer[i]) == 1, "the receiver reads what was offered");
    offer[i].leave_fin(left, i + 1, {i, 7 + i});
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

MODEL_SCENARIO(offer, a_receiver_that_dies_while_it_leaves_a_fin_hides_no_other, {{3, 2, 0, 1}}) {
  Weak::Atomic<std::uint64_t> left{0};
  stage.name(left, "left");
  std::array<Offer, 2> offer;
  std::array<std::uint32_t, 2> buffer{};
  std::array<bool, 2> settled{};
  for (std::uint32_t i = 0; i < 2; ++i) {
    buffer[i] = 1;
    offer[i].announce();
  }
  auto receive = [&](std::uint32_t i) {
    require(offer[i].accept(0), "nobody withdraws it");
    require(get<std::uint32_t>(&buffer[i]) == 1, "the receiver reads what was offered");
    offer[i].leave_fin(left, i + 1, {i, 7 + i});
  };
  auto mortal = stage.mortal("mortal", [&] { receive(0); });
  auto living = stage.thread("living", [&] { receive(1); });
  stage.thread("sender", [&] {
    for (bool last = false; !last;)
      until([&] {
        const bool all_over = stage.over({mortal, living}); // if true, this poll is the last one
        if (left.load_relaxed() == 0) return last = all_over;
        Offer::take_fins(
            left, [&](std::uint64_t offset) -> Offer& { return offer[offset - 1]; },
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
