// Offers: either the sender withdraws one or its receiver takes it, and only one of them uses the buffer.
#include "structures.h"

#include "queue/flow_control.h"
#include "queue/rts.h"

namespace {

using namespace near::model;
using Word = Weak::Atomic<std::uint32_t>;
using Offer = near::queue::RtsDescriptor<Weak>;

constexpr std::uint32_t none = ~0u;

/// The ways that a message of the queue would go: what is stored is published.
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
    put(&buffer, 2u); // its own again
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

MODEL_SCENARIO(offer, a_ticket_of_the_offer_before_takes_nothing, {{3, 3, 1, 0}}) {
  // The first offer is withdrawn or taken; its descriptor then serves another. Its rts is used late, and
  // twice.
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

/// What the receiver's queue entries say to the sender.
enum : std::uint32_t { plain, fin, look };

/// A receiver that finds no slot for its FINs leaves them in the descriptors, and makes no further attempt. The
/// sender, which waits for messages only, gets all its buffers back.
void fins_are_left(Stage& stage, std::uint32_t offers, bool fences) {
  using Flow = near::queue::FlowControl<Weak, WeakSystem>;
  ModelQueue queue(stage, 2);
  Weak::Atomic<std::uint64_t> waiters{0}, notes{0};
  stage.name(waiters, "waiters");
  stage.name(notes, "notes");
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
      put(&buffer[i], 2u); // its own again
    };
    auto look_at_descriptors = [&] {
      std::uint64_t outcome = 0;
      if (Flow::take_notes(notes) == 0) return;
      for (std::uint32_t i = 0; i < offers; ++i)
        if (!done[i] && offer[i].is_received(outcome)) {
          require(outcome == 7 + i, "the outcome is the receiver's");
          settle(i);
        }
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
      if (what == look) look_at_descriptors();
      Flow::wake_waiters(waiters, fences, [&](std::uint64_t) { look_at_descriptors(); });
    }
  });
  stage.thread("receiver", [&, offers, fences] {
    auto producer = queue.producer(1);
    auto send = [&](std::uint32_t what, std::uint32_t which) {
      auto claim = producer.claim();
      if (!claim) return false;
      put(claim.body(), what);
      put(claim.body() + 4, which);
      claim.commit();
      return true;
    };
    require(send(plain, 0) && send(plain, 0), "the queue is empty at first");
    rts.receive();
    for (std::uint32_t i = 0; i < offers; ++i) {
      require(offer[i].accept(0), "nobody withdraws it");
      require(get<std::uint32_t>(&buffer[i]) == 1, "the receiver reads what was offered");
      if (send(fin, i)) continue;
      offer[i].leave_fin(0, 7 + i);
      if (Flow::leave_note(notes, 1)) continue;
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

} // namespace
