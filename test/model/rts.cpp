// Offers: either the sender withdraws one or its receiver takes it, and only one of them uses the buffer.
#include "model.h"

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

} // namespace
