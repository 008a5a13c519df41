// Waiting for space: no sender sleeps while there is a free slot or a packet has come home. Timeouts never
// end a wait here, so a lost announcement is a deadlock.
#include "structures.h"

#include "queue/flow_control.h"
#include "queue/packet_flag.h"

namespace {

using namespace near::model;
using Word = Weak::Atomic<std::uint32_t>;
using Waiters = Weak::Atomic<std::uint64_t>;
using Flow = near::queue::FlowControl<Weak, WeakSystem>;
using Flag = near::queue::PacketFlag<Weak>;

struct OwnedBell {
  OwnedBell(Stage& stage, std::uint32_t owner) {
    stage.name(sleeping, "sleeping " + std::to_string(owner));
    stage.name(bell, "bell " + std::to_string(owner));
  }
  Word sleeping{0}, bell{0};
};

/// As wait_until() in the transport: calls attempt() until it succeeds, and sleeps in between.
template <class Attempt>
void sleep_until(OwnedBell& bell, Waiters& waiters, std::uint64_t self, bool fences, Attempt&& attempt) {
  for (;;) {
    auto rung = Doorbell::rung(bell.bell);
    if (attempt()) return;
    Flow::add_waiter(waiters, self);
    Flow::before_recheck(fences);
    if (attempt()) return;
    Doorbell::sleep(bell.sleeping, bell.bell, rung, fences, 0, [] { return false; });
    Doorbell::awake(bell.sleeping);
  }
}

/// Each sender sends `messages` through one queue of two slots to a reader that never waits for space.
template <std::size_t Senders>
void slots_come_free(Stage& stage, std::uint32_t messages, bool fences) {
  ModelQueue queue(stage, 2);
  Waiters waiters{0};
  stage.name(waiters, "waiters");
  auto bells = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<OwnedBell, Senders>{OwnedBell(stage, I)...};
  }(std::make_index_sequence<Senders>());
  Inbox inbox;
  for (std::uint32_t self = 0; self < Senders; ++self)
    stage.thread("sender " + std::to_string(self), [&, self, messages, fences] {
      auto producer = queue.producer(self);
      for (std::uint32_t number = 0; number < messages; ++number) {
        Claim claim;
        sleep_until(bells[self], waiters, 1u << self, fences,
                    [&] { return static_cast<bool>(claim = producer.claim()); });
        write_message(claim, self, number);
        claim.commit();
      }
    });
  stage.thread("reader", [&, messages, fences] {
    for (std::uint32_t received = 0; received < Senders * messages; ++received) {
      until([&] {
        auto entry = queue.consumer.front([](std::uint32_t) { return false; });
        if (entry.body == nullptr) return false;
        inbox.take(entry.body, entry.claimer);
        queue.consumer.pop();
        return true;
      });
      Flow::wake_waiters(waiters, fences, [&](std::uint64_t who) {
        for (std::uint32_t self = 0; self < Senders; ++self)
          if ((who >> self & 1) != 0) Doorbell::announce(bells[self].bell);
      });
    }
  });
  stage.go();
}

MODEL_SCENARIO(flow_control, nobody_sleeps_while_a_slot_is_free_with_a_barrier_of_all, {{3, 2, 1, 0}}) {
  slots_come_free<1>(stage, 4, false);
}
MODEL_SCENARIO(flow_control, nobody_sleeps_while_a_slot_is_free_with_fences, {{3, 2, 1, 0}}) {
  slots_come_free<1>(stage, 4, true);
}
MODEL_SCENARIO(flow_control, two_senders_wait_for_slots_of_one_queue, {{2, 1, 0, 0}}) {
  slots_come_free<2>(stage, 2, false);
}

/// A sender that needs its two packets back from two readers.
void packets_come_home(Stage& stage, bool fences) {
  std::array<Flag, 2> flags;
  std::array<std::uint32_t, 2> packets{};
  Waiters waiters{0};
  OwnedBell bell(stage, 0);
  stage.name(waiters, "waiters");
  for (std::uint32_t i : {0u, 1u}) {
    stage.name(flags[i].generation, "flag " + std::to_string(i));
    put(&packets[i], 7u);
    stage.thread("reader " + std::to_string(i), [&, i, fences] {
      require(get<std::uint32_t>(&packets[i]) == 7, "a packet is not written before it is home");
      flags[i].give_back(1);
      Flow::wake_waiters(waiters, fences, [&](std::uint64_t) { Doorbell::announce(bell.bell); });
    });
  }
  stage.thread("sender", [&, fences] {
    std::uint32_t home = 0;
    auto attempt = [&] {
      for (std::uint32_t i : {0u, 1u}) {
        if ((home >> i & 1) != 0 || !flags[i].is_home(1)) continue;
        home |= 1u << i;
        put(&packets[i], 8u);
        return true;
      }
      return false;
    };
    while (home != 3) sleep_until(bell, waiters, 1, fences, attempt);
  });
  stage.go();
}

MODEL_SCENARIO(flow_control, nobody_sleeps_while_a_packet_is_home_with_a_barrier_of_all, {{3, 2, 1, 0}}) {
  packets_come_home(stage, false);
}
MODEL_SCENARIO(flow_control, nobody_sleeps_while_a_packet_is_home_with_fences, {{3, 2, 1, 0}}) {
  packets_come_home(stage, true);
}

} // namespace
