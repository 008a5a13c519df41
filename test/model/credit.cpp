// Credits: the receiver never keeps more messages than the limit, and the sender never gets stuck, also when
// counters wrap.
#include "structures.h"

#include "queue/credit.h"

namespace {

using namespace near::model;

void send_on_credit(Stage& stage, std::uint32_t first, std::uint32_t limit, std::uint32_t messages) {
  ModelQueue queue(stage, 4);
  near::queue::CreditCounter<Weak> counter(first);
  stage.thread("sender", [&] {
    auto producer = queue.producer(0);
    near::queue::CreditAccount<Weak> account(&counter);
    for (std::uint32_t number = 0; number < messages; ++number) {
      until([&] { return account.available(limit); });
      Claim claim;
      until([&] { return static_cast<bool>(claim = producer.claim()); });
      write_message(claim, 0, number);
      claim.commit();
      account.spend();
    }
  });
  stage.thread("receiver", [&] {
    Inbox inbox;
    std::uint32_t kept = 0;
    auto take = [&] {
      auto entry = queue.consumer.front([](std::uint32_t) { return false; });
      if (entry.body == nullptr) return false;
      inbox.take(entry.body, 0);
      queue.consumer.pop();
      return true;
    };
    while (inbox.count(0) < messages) {
      until(take);
      ++kept;
      while (inbox.count(0) < messages && take()) ++kept; // takes whatever else has arrived
      require(kept <= limit, "the receiver keeps no more messages than the limit");
      for (; kept > 0; --kept) counter.give_back();
    }
  });
  stage.go();
}

MODEL_SCENARIO(credit, the_receiver_keeps_no_more_than_the_limit, {{2, 2, 1, 0}}) {
  send_on_credit(stage, 0, 2, 5);
}
MODEL_SCENARIO(credit, the_counters_wrap_round, {{3, 3, 2, 0}}) { send_on_credit(stage, ~0u - 1, 1, 4); }

} // namespace
