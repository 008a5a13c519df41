// An agent that reaches further machines. Here these are shells: what they read comes back, or something else.
#include "launch/relay.h"
#include "machines/tree.h"
#include "os/clock.h"
#include "os/process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace near::launch {
namespace {

using machines::Frame;
using machines::Kind;

class Relays : public testing::Test {
protected:
  static void SetUpTestSuite() { std::signal(SIGPIPE, SIG_IGN); }
  void SetUp() override {
    ASSERT_TRUE(poller_.open().ok());
    ASSERT_TRUE(bell_.open().ok());
    ASSERT_TRUE(poller_.add(bell_.descriptor(), 1).ok());
  }

  bool reach(unsigned machine, const std::string& script, unsigned lost_after = 0) {
    return relay_.obey({Kind::reach, machines::Reach{machine, {"sh", "-c", script}, "/", lost_after}.body()});
  }
  bool send(unsigned machine, Kind kind, std::string_view body) {
    return relay_.obey({Kind::relayed, machines::Relayed::body(machine, machines::frame(kind, body))});
  }
  bool order(Kind kind, unsigned machine) {
    return relay_.obey({kind, machines::BodyWriter().number(machine).body()});
  }
  /// Lets the relay work until that is true; false after a long time.
  bool runs_until(const std::function<bool()>& done) {
    const std::uint64_t deadline_ns = os::monotonic_ns() + 20'000'000'000;
    std::vector<std::uint64_t> keys;
    while (!done()) {
      if (os::monotonic_ns() > deadline_ns) return false;
      constexpr int often_ms = 20;
      poller_.wait(often_ms, keys);
      for (const std::uint64_t key : keys) {
        if (key == 1)
          bell_.quiet();
        else
          relay_.dispatch(key);
      }
      os::Ending ending;
      for (bool none_left = false; os::reap(ending, none_left);) relay_.reaped(ending);
      relay_.check();
    }
    return true;
  }
  /// What has come from that machine so far.
  std::string output_of(unsigned machine) const {
    std::string all;
    for (const Frame& each : said_)
      if (machines::Relayed relayed; each.kind == Kind::relayed &&
                                     machines::Relayed::read(each.body, relayed) &&
                                     relayed.machine == machine)
        all += relayed.frame.body;
    return all;
  }
  std::vector<machines::Parted> parted() const {
    std::vector<machines::Parted> all;
    for (const Frame& each : said_)
      if (machines::Parted parted; each.kind == Kind::parted && machines::Parted::read(each.body, parted))
        all.push_back(parted);
    return all;
  }

  os::Poller& poller_ = *new os::Poller; // the relay's threads ring the bell as long as the process lives
  os::Bell& bell_ = *new os::Bell;
  std::vector<Frame>& said_ = *new std::vector<Frame>;
  Relay& relay_ = *new Relay(poller_, 100, bell_, [&said = said_](Kind kind, std::string_view body) {
    said.push_back({kind, std::string(body)});
  });
};

const std::string greets = "printf '\\nNEARMPI-AGENT\\n'; ";

TEST_F(Relays, pass_on_what_is_said_to_and_by_a_machine) {
  ASSERT_TRUE(reach(5, "echo Welcome; " + greets + "exec cat"));
  ASSERT_TRUE(reach(6, greets + "exec cat"));
  EXPECT_TRUE(send(5, Kind::output, "five"));
  EXPECT_TRUE(send(6, Kind::output, "six"));
  EXPECT_TRUE(send(6, Kind::error, std::string(300'000, 'x')));
  EXPECT_TRUE(runs_until([&] { return output_of(5).size() >= 4 && output_of(6).size() >= 300'003; }));
  EXPECT_EQ(output_of(5), "five");
  EXPECT_EQ(output_of(6), "six" + std::string(300'000, 'x'));
  EXPECT_FALSE(relay_.is_over());
  EXPECT_TRUE(order(Kind::hang_up, 5));
  EXPECT_TRUE(order(Kind::hang_up, 6));
  EXPECT_TRUE(runs_until([&] { return relay_.is_over() && parted().size() == 2; }));
}

TEST_F(Relays, send_everything_before_they_hang_up) {
  ASSERT_TRUE(reach(5, greets + "sleep 0.3; exec cat"));
  const std::string much(1 << 20, 'x');
  EXPECT_TRUE(send(5, Kind::input, much));
  EXPECT_TRUE(order(Kind::hang_up, 5));
  EXPECT_TRUE(runs_until([&] { return relay_.is_over(); }));
  EXPECT_EQ(output_of(5), much);
}

TEST_F(Relays, say_why_a_machine_cannot_be_reached) {
  ASSERT_TRUE(reach(5, "echo no route >&2; exit 255"));
  ASSERT_TRUE(reach(6, "exit 127"));
  ASSERT_TRUE(relay_.obey({Kind::reach, machines::Reach{7, {"/nowhere/ssh"}, "/", 0}.body()}));
  ASSERT_TRUE(relay_.obey({Kind::reach, machines::Reach{8, {"sh"}, "/nowhere", 0}.body()}));
  ASSERT_TRUE(runs_until([&] { return relay_.is_over() && parted().size() == 4; }));
  for (const auto& each : parted()) {
    if (each.machine == 5) EXPECT_EQ(each.why, "sh ended with status 255: no route");
    if (each.machine == 6) EXPECT_NE(each.why.find("its shell did not find mpiexec"), std::string::npos);
    if (each.machine == 7) EXPECT_NE(each.why.find("/nowhere/ssh"), std::string::npos);
    if (each.machine == 8) EXPECT_NE(each.why.find("/nowhere"), std::string::npos);
  }
}

TEST_F(Relays, say_once_that_a_connection_has_ended_and_then_nothing_of_it) {
  ASSERT_TRUE(reach(5, greets + "echo last words >&2; exit 1"));
  ASSERT_TRUE(runs_until([&] { return !parted().empty(); }));
  EXPECT_EQ(parted()[0].why, "the connection to it has ended: last words");
  EXPECT_TRUE(send(5, Kind::output, "too late")) << "mpiexec did not know yet";
  EXPECT_TRUE(order(Kind::cut, 5));
  EXPECT_TRUE(runs_until([&] { return relay_.is_over(); }));
  EXPECT_EQ(parted().size(), 1u);
}

TEST_F(Relays, notice_a_silent_machine_and_end_what_reached_it) {
  ASSERT_TRUE(reach(5, greets + "exec sleep 1000", 2));
  ASSERT_TRUE(runs_until([&] { return !parted().empty(); }));
  EXPECT_EQ(parted()[0].why, "nothing has been heard from it for 2 s (NEAR_LOST_AFTER)");
  EXPECT_TRUE(runs_until([&] { return relay_.is_over(); }));
  bool none_left = false;
  EXPECT_TRUE(runs_until([&] {
    os::Ending ending;
    (void)os::reap(ending, none_left);
    return none_left;
  }));
}

TEST_F(Relays, notice_damage_from_a_machine) {
  ASSERT_TRUE(reach(5, greets + "echo nonsense; exec cat"));
  ASSERT_TRUE(runs_until([&] { return !parted().empty(); }));
  EXPECT_EQ(parted()[0].why, "what it sends is damaged");
}

TEST_F(Relays, cut_a_connection_without_a_word) {
  ASSERT_TRUE(reach(5, greets + "exec sleep 1000"));
  EXPECT_TRUE(order(Kind::cut, 5));
  bool none_left = false;
  EXPECT_TRUE(runs_until([&] {
    os::Ending ending;
    (void)os::reap(ending, none_left);
    return none_left;
  }));
  EXPECT_TRUE(parted().empty());
  EXPECT_TRUE(relay_.is_over());
}

TEST_F(Relays, hang_up_when_mpiexec_has_gone) {
  ASSERT_TRUE(reach(5, greets + "exec cat"));
  relay_.abandon();
  EXPECT_TRUE(runs_until([&] { return relay_.is_over(); }));
}

TEST_F(Relays, refuse_damaged_orders) {
  ASSERT_TRUE(reach(5, greets + "exec cat"));
  EXPECT_FALSE(reach(5, "exec cat")) << "it is reached already";
  EXPECT_FALSE(send(6, Kind::output, "x")) << "it was never to be reached";
  EXPECT_FALSE(order(Kind::hang_up, 6));
  EXPECT_FALSE(order(Kind::cut, 6));
  for (const Kind kind : {Kind::reach, Kind::relayed, Kind::hang_up, Kind::cut}) {
    EXPECT_TRUE(Relay::takes(kind));
    EXPECT_FALSE(relay_.obey({kind, "damage"}));
  }
  EXPECT_FALSE(relay_.obey({Kind::relayed, machines::BodyWriter().number(5).body() + "damage"}));
  EXPECT_FALSE(Relay::takes(Kind::end));
  EXPECT_TRUE(order(Kind::cut, 5));
  EXPECT_TRUE(runs_until([&] { return relay_.is_over(); }));
}

} // namespace
} // namespace near::launch
