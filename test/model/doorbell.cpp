// The doorbell: no rank sleeps while it has a message. Timeouts never end a wait here, so a lost wake-up is a
// deadlock.
#include "structures.h"

namespace {

using namespace near::model;
using Word = Weak::Atomic<std::uint32_t>;

constexpr auto nobody_is_dead = [](std::uint32_t) { return false; };

struct Bell {
  explicit Bell(Stage& stage) {
    stage.name(sleeping, "sleeping");
    stage.name(bell, "bell");
  }
  void ring_if_sleeping(bool fences) { Doorbell::ring_if_sleeping(sleeping, bell, fences); }
  void ring() { Doorbell::ring(sleeping, bell); }
  void announce() { Doorbell::announce(bell); }
  Word sleeping{0}, bell{0};
};

/// Receives by `take` until it returns true; sleeps on the bell if `look` finds nothing.
template <class Take, class Look>
void receive_asleep(Bell& bell, bool fences, Take&& take, Look&& look) {
  for (;;) {
    auto rung = Doorbell::rung(bell.bell);
    bool took = false;
    if (take(took)) return;
    if (took) continue;
    Doorbell::sleep(bell.sleeping, bell.bell, rung, fences, 0, look);
    Doorbell::awake(bell.sleeping);
  }
}

/// Only the handshake: each of two senders has one word as its mail.
void two_senders_with_mail(Stage& stage, bool fences) {
  Bell bell(stage);
  std::array<Word, 2> mail;
  for (std::uint32_t self : {0u, 1u}) {
    stage.name(mail[self], "mail " + std::to_string(self));
    stage.thread("sender " + std::to_string(self), [&, self] {
      mail[self].store_release(1);
      bell.ring_if_sleeping(fences);
    });
  }
  stage.thread("sleeper", [&] {
    std::uint32_t got = 0;
    auto take = [&](bool& took) {
      for (std::uint32_t i = 0; i < 2; ++i) {
        if ((got >> i & 1) != 0 || mail[i].load_acquire() == 0) continue;
        got |= 1u << i;
        took = true;
      }
      return got == 3;
    };
    auto look = [&] {
      for (std::uint32_t i = 0; i < 2; ++i)
        if ((got >> i & 1) == 0 && mail[i].load_relaxed() != 0) return true;
      return false;
    };
    receive_asleep(bell, fences, take, look);
  });
  stage.go();
}

MODEL_SCENARIO(doorbell, no_mail_is_missed_with_a_barrier_of_all, {{3, 2, 1, 0}}) {
  two_senders_with_mail(stage, false);
}
MODEL_SCENARIO(doorbell, no_mail_is_missed_with_fences, {{3, 2, 1, 0}}) {
  two_senders_with_mail(stage, true);
}

/// A sender of several messages through a real queue.
void messages_through_a_queue(Stage& stage, bool fences) {
  ModelQueue queue(stage, 2);
  Bell bell(stage);
  Inbox inbox;
  stage.thread("sender", [&] {
    auto producer = queue.producer(0);
    for (std::uint32_t number = 0; number < 3; ++number) {
      Claim claim;
      until([&] { return static_cast<bool>(claim = producer.claim()); });
      write_message(claim, 0, number);
      claim.commit();
      bell.ring_if_sleeping(fences);
    }
  });
  stage.thread("sleeper", [&] {
    auto take = [&](bool& took) {
      auto entry = queue.consumer.front(nobody_is_dead);
      if (entry.body == nullptr) return false;
      inbox.take(entry.body, entry.claimer);
      queue.consumer.pop();
      took = true;
      return inbox.count(0) == 3;
    };
    receive_asleep(bell, fences, take, [&] { return queue.consumer.has_message(); });
  });
  stage.go();
}

MODEL_SCENARIO(doorbell, no_message_is_missed_with_a_barrier_of_all, {{3, 2, 1, 0}}) {
  messages_through_a_queue(stage, false);
}
MODEL_SCENARIO(doorbell, no_message_is_missed_with_fences, {{3, 2, 1, 0}}) {
  messages_through_a_queue(stage, true);
}

MODEL_SCENARIO(doorbell, a_death_wakes_a_sleeper_behind_the_claim_of_the_dead, {{1, 1, 1, 1}}) {
  // The sleeper cannot see a message behind the claim of a dead producer; the launcher rings after it has
  // marked the producer as dead, which must be enough.
  ModelQueue queue(stage, 2);
  Bell bell(stage);
  Inbox inbox;
  Word phase{0};
  stage.name(phase, "phase");
  auto mortal = stage.mortal("mortal", [&] {
    auto claim = queue.producer(0).claim();
    if (!claim) return;
    write_message(claim, 0, 0);
    claim.commit();
    bell.ring_if_sleeping(false);
  });
  stage.thread("living", [&] {
    auto claim = queue.producer(1).claim();
    require(static_cast<bool>(claim), "two slots hold two messages");
    write_message(claim, 1, 0);
    claim.commit();
    bell.ring_if_sleeping(false);
  });
  stage.thread("launcher", [&] {
    if (!stage.await_end(mortal)) return;
    phase.store_release(1);
    bell.announce();
  });
  stage.thread("sleeper", [&] {
    auto is_dead = [&](std::uint32_t who) { return who == 0 && phase.load_acquire() != 0; };
    auto take = [&](bool& took) {
      auto entry = queue.consumer.front(is_dead);
      if (entry.body == nullptr) return false;
      inbox.take(entry.body, entry.claimer);
      queue.consumer.pop();
      took = true;
      return inbox.count(1) == 1;
    };
    receive_asleep(bell, false, take, [&] { return queue.consumer.has_message(); });
  });
  stage.go();
}

MODEL_SCENARIO(doorbell, threads_of_one_rank_wait_at_one_bell, {{2, 1, 0, 0}}) {
  // As wait_until() in the transport: a thread that makes progress, under a lock, takes messages for all
  // threads and rings for the others; only the last waiting thread clears the flag.
  constexpr std::uint32_t here = 1, taken = 2;
  std::array<Word, 2> mail;
  Bell bell(stage);
  Mutex lock;
  std::uint32_t got = 0, waiting = 0;
  put(&got, 0u);
  put(&waiting, 0u);
  stage.name(mail[0], "mail 0");
  stage.name(mail[1], "mail 1");
  auto progress = [&] {
    std::uint32_t now = get<std::uint32_t>(&got), before = now;
    for (std::uint32_t i = 0; i < 2; ++i) {
      if (mail[i].load_acquire() != here) continue;
      mail[i].store_relaxed(taken);
      now |= 1u << i;
    }
    if (now != before) put(&got, now);
    return now != before;
  };
  auto look = [&] {
    return mail[0].load_relaxed() == here || mail[1].load_relaxed() == here;
  }; // without the lock
  for (std::uint32_t self : {0u, 1u})
    stage.thread("waiter " + std::to_string(self), [&, self] {
      lock.lock();
      put(&waiting, get<std::uint32_t>(&waiting) + 1);
      for (;;) {
        auto rung = Doorbell::rung(bell.bell);
        if ((get<std::uint32_t>(&got) >> self & 1) != 0) break;
        if (progress()) {
          if (get<std::uint32_t>(&waiting) > 1) bell.ring();
          continue;
        }
        lock.unlock();
        Doorbell::sleep(bell.sleeping, bell.bell, rung, true, 0, look);
        lock.lock();
        if (get<std::uint32_t>(&waiting) == 1) Doorbell::awake(bell.sleeping);
      }
      put(&waiting, get<std::uint32_t>(&waiting) - 1);
      lock.unlock();
    });
  stage.thread("sender", [&] {
    for (auto& word : mail) {
      word.store_release(here);
      bell.ring_if_sleeping(true);
    }
  });
  stage.go();
}

} // namespace
