// Connections between machines: how a loss is told from an end in order, and who hears of it.
#include "boot/lifelines.h"
#include "os/poller.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace near::boot {
namespace {

std::vector<std::byte> here() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto bytes = std::as_bytes(std::span(&address, 1));
  return {bytes.begin(), bytes.end()};
}

/// One machine of a job, driven by the test.
struct Member {
  Member(std::uint32_t number, std::uint64_t secret = 42) : machine(number) {
    EXPECT_TRUE(poller.open().ok());
    EXPECT_TRUE(lines.listen(here()).ok()) << base::failure_text();
    const Result begun = lines.begin(poller, 10,
                                     {.secret = secret,
                                      .machine = number,
                                      .name = name(),
                                      .patience = 5,
                                      .on_loss = [this](const Loss& loss) { losses.push_back(loss); }});
    EXPECT_TRUE(begun.ok()) << base::failure_text();
  }
  std::string name() const { return "m" + std::to_string(machine); }
  void connect_to(const Member& other) {
    ASSERT_TRUE(lines.connect({other.machine, other.name(), here(), other.lines.port()}).ok())
        << base::failure_text();
  }
  /// Handles what there is, and what follows within 50 ms.
  void run() {
    std::vector<std::uint64_t> keys;
    for (poller.wait(50, keys); !keys.empty(); poller.wait(50, keys))
      for (const std::uint64_t key : keys) EXPECT_TRUE(lines.handle(key));
  }
  std::vector<std::uint32_t> lost() const {
    std::vector<std::uint32_t> machines;
    for (const Loss& loss : losses) machines.push_back(loss.machine);
    return machines;
  }

  std::uint32_t machine;
  os::Poller poller;
  Lifelines lines;
  std::vector<Loss> losses;
};

using Machines = std::vector<std::uint32_t>;

TEST(lifelines, go_to_the_next_two_in_the_ring) {
  EXPECT_EQ(next_in_ring(0, 1), (Machines{}));
  EXPECT_EQ(next_in_ring(0, 2), (Machines{1}));
  EXPECT_EQ(next_in_ring(1, 2), (Machines{0}));
  EXPECT_EQ(next_in_ring(1, 3), (Machines{2, 0}));
  EXPECT_EQ(next_in_ring(6, 8), (Machines{7, 0}));
}

TEST(lifelines, that_end_without_a_goodbye_tell_both_sides) {
  for (const bool the_one_that_connected : {true, false}) {
    Member first(1), second(2);
    first.connect_to(second);
    second.run();
    Member& dies = the_one_that_connected ? first : second;
    Member& lives = the_one_that_connected ? second : first;
    dies.lines.close_all();
    lives.run();
    ASSERT_EQ(lives.lost(), (Machines{dies.machine}));
    EXPECT_EQ(lives.losses[0].name, dies.name());
    EXPECT_FALSE(lives.losses[0].silent);
    EXPECT_EQ(lives.losses[0].first_hand, !the_one_that_connected);
  }
}

TEST(lifelines, that_end_with_a_goodbye_tell_of_no_loss) {
  Member first(1), second(2);
  first.connect_to(second);
  second.connect_to(first);
  first.lines.leave(); // has not looked at the connection of the other one
  second.run();
  EXPECT_EQ(second.lost(), Machines{});
}

TEST(lifelines, are_there_although_the_other_side_does_nothing) {
  Member first(1), second(2);
  first.connect_to(second);
  first.run();
  EXPECT_EQ(first.lost(), Machines{});
  second.lines.close_all(); // never accepted it
  first.run();
  EXPECT_EQ(first.lost(), Machines{2});
}

TEST(lifelines, pass_on_what_one_side_has_noticed) {
  Member first(1), second(2), third(3), fourth(4);
  first.connect_to(second);
  third.connect_to(second);
  third.connect_to(fourth);
  for (Member* each : {&second, &fourth}) each->run();
  fourth.lines.close_all();
  third.run();
  second.run();
  first.run();
  EXPECT_EQ(third.lost(), Machines{4});
  EXPECT_EQ(second.lost(), Machines{4});
  ASSERT_EQ(first.lost(), Machines{4});
  EXPECT_EQ(first.losses[0].name, "m4");
  EXPECT_FALSE(first.losses[0].first_hand);
}

TEST(lifelines, turn_away_what_does_not_know_the_secret) {
  Member first(1), outsider(7, 43);
  outsider.connect_to(first);
  first.run();
  outsider.lines.close_all();
  first.run();
  EXPECT_EQ(first.lost(), Machines{});
}

TEST(lifelines, turn_away_what_says_nothing_sensible) {
  Member first(1);
  const auto address = here();
  sockaddr_in to{};
  std::memcpy(&to, address.data(), sizeof to);
  to.sin_port = htons(first.lines.port());
  for (const std::size_t bytes : {0, 1, 63, 64, 1000}) {
    const int outsider = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(outsider, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const std::string noise(bytes, 'x');
    (void)!send(outsider, noise.data(), noise.size(), MSG_NOSIGNAL);
    first.run();
    close(outsider);
    first.run();
  }
  EXPECT_EQ(first.lost(), Machines{});
}

} // namespace
} // namespace near::boot
