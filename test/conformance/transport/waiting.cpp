// Messages that wait for space, peers that are held back, and processes that sleep until something happens.
#include "suite.h"

#include <chrono>
#include <sys/resource.h>

namespace near::test {
namespace {

/// While it exists, sleeps of this process never time out: the watchdog kills a process that is not woken.
class SleepsUntilWoken {
public:
  SleepsUntilWoken() {
    constexpr std::uint64_t hour_ns = 3'600'000'000'000;
    auto& now = transport::wait_settings;
    now.first_sleep_ns = now.longest_sleep_ns = now.descriptor_sleep_ns = hour_ns;
    getrusage(RUSAGE_SELF, &before_);
  }
  ~SleepsUntilWoken() { transport::wait_settings = usual_; }
  SleepsUntilWoken(const SleepsUntilWoken&) = delete;
  SleepsUntilWoken& operator=(const SleepsUntilWoken&) = delete;

  bool has_slept() const {
    rusage now{};
    getrusage(RUSAGE_SELF, &now);
    return now.ru_nvcsw > before_.ru_nvcsw;
  }

private:
  transport::WaitSettings usual_ = transport::wait_settings;
  rusage before_{};
};

/// Waits until the other process should be asleep.
void let_the_other_one_sleep() { usleep(300'000); }

/// Sends eager messages, each with a waiter, until some of them wait for space. Returns how many were accepted.
int fill(Peer& peer, std::deque<Side>& waiters, const Bytes& data) {
  int sent = 0, waiting = 0;
  while (waiting < 3) {
    Side& waiter = waiters.emplace_back();
    Bytes lent = data;
    const Eager what =
        transport::send_eager(peer, {5, 0, sent, lent.size()}, buffer_of(lent.data(), lent.size()), &waiter);
    require(what != Eager::refused, "a message that has credit waits for space");
    waiting += what == Eager::waits ? 1 : 0;
    waiter.finished = what == Eager::left;
    ++sent;
  }
  return sent;
}

TEST_P(Conformance, eager_messages_that_wait_for_space_leave_in_order) {
  if (!kind().queues_eager()) GTEST_SKIP() << "credits end before space does, or there is no receiver";
  run([](Part& part) {
    const Bytes data = pattern(transport::eager_limit(), 3);
    if (part.sends) {
      part.meet();
      std::deque<Side> waiters;
      const int sent = fill(*part.other, waiters, data);
      require(!transport::try_send_eager(*part.other, {5, 0, sent, 0}, buffer_of(nullptr, 0)),
              "without a waiter, a message is refused");
      for (int i = 0; i < 100; ++i) transport::progress();
      require(!waiters.back().finished, "no waiter is called before its message has left");
      part.meet();
      wait_for([&] { return waiters.back().finished; });
      for (const Side& waiter : waiters) require(waiter.finished, "they leave in order");
      send_eager(*part.other, -1, {});
    }
    if (part.receives) {
      part.meet();
      part.meet(); // takes no message before this
      for (int i = 0;; ++i) {
        const Arrived message = next();
        if (message.envelope.tag == -1) break;
        require(message.envelope.tag == i && message.data == data, "each arrives whole, in order");
      }
    }
  });
}

TEST_P(Conformance, a_process_whose_messages_wait_for_space_sleeps_and_is_woken) {
  if (!kind().announces_space()) GTEST_SKIP() << "nobody says that there is space";
  run([](Part& part) {
    const Bytes data = pattern(8, 3);
    std::deque<Side> waiters;
    if (part.sends) {
      const int sent = fill(*part.other, waiters, data);
      part.meet();
      {
        const SleepsUntilWoken sleeps;
        wait_for([&] { return waiters.back().finished; });
        require(sleeps.has_slept(), "it has given the processor away");
      }
      send_eager(*part.other, sent, {});
    }
    if (part.receives) {
      part.meet();
      let_the_other_one_sleep();
      for (int i = 0;; ++i) {
        const Arrived message = next();
        require(message.envelope.tag == i, "in order");
        if (message.data.empty()) break;
      }
    }
  });
}

TEST_P(Conformance, a_process_with_a_long_message_under_way_polls_for_a_time) {
  if (!kind().needs_polls()) GTEST_SKIP() << "its messages move while the processes sleep";
  run([](Part& part) {
    Bytes data(64 << 20);
    Side side;
    if (part.sends) {
      announce(*part.other, 1, buffer_of(data.data(), data.size()), side);
      {
        transport::wait_settings.may_sleep_at_once = false; // beside other programs it would nap
        const SleepsUntilWoken sleeps;
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
        wait_for([&] { return std::chrono::steady_clock::now() > end; });
        require(!sleeps.has_slept(), "it would not see the receiver's answer in time");
      }
      part.meet();
    }
    if (part.receives) {
      part.meet();
      take(next(), buffer_of(data.data(), data.size()), side);
    }
    wait_for([&] { return side.finished; });
  });
}

TEST_P(Conformance, a_process_that_waits_sleeps_and_is_woken) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can send";
  run([](Part& part) {
    Bytes large = pattern(100'000, 2);
    Side sending, receiving;
    part.meet();
    if (part.sends) {
      let_the_other_one_sleep();
      send_eager(*part.other, 1, pattern(8, 1));
      let_the_other_one_sleep();
      announce(*part.other, 2, buffer_of(large.data(), large.size()), sending);
      const SleepsUntilWoken sleeps;
      wait_for([&] { return sending.finished; });
      require(sleeps.has_slept(), "it waits for the receiver");
    }
    if (part.receives) {
      Arrived message;
      {
        const SleepsUntilWoken sleeps;
        require(next().envelope.tag == 1, "an eager message wakes");
        require(sleeps.has_slept(), "a process that waits gives the processor away");
        message = next();
        require(message.is_rts, "and so does an RTS");
      }
      let_the_other_one_sleep();
      Bytes in(large.size());
      take(message, buffer_of(in.data(), in.size()), receiving);
      wait_for([&] { return receiving.finished; });
      require(in == large, "the answer wakes the sender");
    }
  });
}

TEST_P(Conformance, while_a_peer_is_held_back_nothing_takes_the_fast_path) {
  const bool has_lanes = kind().has_fast_path(), same_process = !kind().has_processes();
  run([has_lanes, same_process](Part& part) {
    constexpr int few = 100, most = 100'000;
    // Without membarrier, every message needs a check.
    const bool has_fast_path = has_lanes && !transport::wait_settings.fences;
    int tag = 0, received = 0;
    auto take_one = [&] {
      if (next().envelope.tag != received++) require(false, "messages arrive in order");
    };
    // There is a fast path if messages may be sent without a check (SendState). This test does not use it.
    auto can_be_fast = [&] { return part.other->send.lane.left() != 0; };
    auto send_some = [&](int count, auto&& enough) {
      for (int i = 0; i < count && !enough(); ++i) {
        send_eager(*part.other, tag++, pattern(8, 1));
        transport::progress();
        if (same_process) take_one();
      }
    };
    if (part.sends) {
      send_some(has_fast_path ? most : few, can_be_fast);
      require(can_be_fast() == has_fast_path, "a pair that talks gets the fast path, where there is one");
      transport::hold_back(*part.other, true);
      require(!can_be_fast(), "a peer that is held back has none");
      send_some(few, [&] {
        require(!can_be_fast(), "and gets none by further messages");
        return false;
      });
      transport::hold_back(*part.other, false);
      send_some(has_fast_path ? most : few, can_be_fast);
      require(can_be_fast() == has_fast_path, "until it is held back no more");
      if (!same_process) send_eager(*part.other, -1, {});
    }
    if (part.receives && !same_process)
      for (;;) {
        const Arrived message = next();
        if (message.envelope.tag == -1) break;
        require(message.envelope.tag == received++, "messages arrive in order");
      }
  });
}

} // namespace
} // namespace near::test
