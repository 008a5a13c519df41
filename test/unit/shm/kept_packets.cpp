// Packets that are kept for the next message to the peer that has sent them.
#include "shm/kept_packets.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace {

using near::shm::KeptPackets;
using near::shm::PacketReference;

class Kept : public testing::Test {
protected:
  void keep(std::uint32_t packet) {
    kept_.keep(
        PacketReference{.packet = packet, .bytes = 100, .generation = 7, .is_receivers = packet % 2 == 1},
        [this](const PacketReference& back) { returned_.push_back(back.packet); });
  }
  std::vector<std::uint32_t> take_all() {
    std::vector<std::uint32_t> taken;
    while (!kept_.empty()) taken.push_back(kept_.pop_oldest().packet);
    return taken;
  }

  KeptPackets kept_;
  std::vector<std::uint32_t> returned_;
};

TEST_F(Kept, come_out_with_the_last_or_the_first_one_first) {
  kept_.set_limit(4);
  for (std::uint32_t packet : {11u, 12u, 13u, 14u}) keep(packet);
  EXPECT_EQ(kept_.pop().packet, 14u);
  EXPECT_EQ(take_all(), (std::vector<std::uint32_t>{11, 12, 13}));
  EXPECT_TRUE(returned_.empty());
}

TEST_F(Kept, come_out_together_in_the_order_in_which_they_came) {
  kept_.set_limit(4);
  for (std::uint32_t packet = 1; packet <= KeptPackets::most + 2; ++packet)
    keep(packet); // goes round the ring
  std::array<PacketReference, 3> last;
  kept_.pop(last);
  EXPECT_EQ(last[0].packet, KeptPackets::most);
  EXPECT_EQ(last[2].packet, KeptPackets::most + 2);
  EXPECT_EQ(take_all(), (std::vector<std::uint32_t>{KeptPackets::most - 1}));
}

TEST_F(Kept, are_kept_again_as_the_last_ones) {
  kept_.set_limit(4);
  keep(1);
  keep(2);
  const PacketReference taken = kept_.pop();
  kept_.push(taken);
  EXPECT_EQ(take_all(), (std::vector<std::uint32_t>{1, 2}));
}

TEST_F(Kept, are_those_that_came_last) {
  kept_.set_limit(3);
  for (std::uint32_t packet = 1; packet <= 100; ++packet) keep(packet);
  EXPECT_EQ(returned_.size(), 97u);
  EXPECT_EQ(returned_.front(), 1u);
  EXPECT_EQ(returned_.back(), 97u);
  EXPECT_EQ(take_all(), (std::vector<std::uint32_t>{98, 99, 100}));
}

TEST_F(Kept, are_none_without_a_limit) {
  keep(5);
  EXPECT_TRUE(kept_.empty());
  EXPECT_EQ(returned_, (std::vector<std::uint32_t>{5}));
}

TEST_F(Kept, never_exceed_the_space_for_them) {
  kept_.set_limit(1000);
  for (std::uint32_t packet = 0; packet < 200; ++packet) keep(packet);
  EXPECT_EQ(take_all().size(), KeptPackets::most);
  EXPECT_EQ(returned_.size(), 200 - KeptPackets::most);
}

TEST_F(Kept, know_their_generation_and_owner) {
  kept_.set_limit(2);
  keep(3);
  keep(4);
  PacketReference first = kept_.pop_oldest(), second = kept_.pop_oldest();
  EXPECT_TRUE(first.is_receivers);
  EXPECT_FALSE(second.is_receivers);
  EXPECT_EQ(first.generation, 7);
}

TEST_F(Kept, know_that_messages_go_one_way_after_several_without_an_answer) {
  kept_.message_left();
  kept_.message_left();
  EXPECT_TRUE(kept_.are_answered());
  kept_.message_left();
  EXPECT_FALSE(kept_.are_answered());
  kept_.message_came();
  EXPECT_TRUE(kept_.are_answered());
}

TEST_F(Kept, are_worth_keeping_until_several_messages_were_not_answered) {
  EXPECT_TRUE(kept_.expects_answer());
  kept_.message_came();
  kept_.message_came();
  EXPECT_TRUE(kept_.expects_answer());
  kept_.message_came();
  EXPECT_FALSE(kept_.expects_answer());
  kept_.message_left();
  EXPECT_TRUE(kept_.expects_answer());
}

TEST_F(Kept, are_worth_keeping_for_as_many_messages_as_were_answered_last_time) {
  for (int i = 0; i < 10; ++i) kept_.message_came();
  EXPECT_FALSE(kept_.expects_answer());
  for (int i = 0; i < 10; ++i) kept_.message_left();
  for (int i = 0; i < 10; ++i) kept_.message_came();
  EXPECT_TRUE(kept_.expects_answer());
  kept_.message_came();
  EXPECT_FALSE(kept_.expects_answer());
  // One answer to a long stream does not make all the next ones worth keeping.
  for (int i = 0; i < 1000; ++i) kept_.message_came();
  kept_.message_left();
  for (int i = 0; i < 100; ++i) kept_.message_came();
  EXPECT_FALSE(kept_.expects_answer());
  // An answer to one message makes it as before.
  kept_.message_left();
  kept_.message_came();
  kept_.message_left();
  for (int i = 0; i < 3; ++i) kept_.message_came();
  EXPECT_FALSE(kept_.expects_answer());
}

TEST(KeptRuns, come_out_with_the_last_one_first_and_are_bounded) {
  near::shm::KeptRuns runs;
  EXPECT_TRUE(runs.empty());
  EXPECT_TRUE(runs.is_full()) << "without a limit none is kept";
  runs.set_limit(3);
  for (std::uint32_t packet : {8u, 12u, 16u}) {
    EXPECT_FALSE(runs.is_full());
    runs.push(PacketReference{.packet = packet, .bytes = 65536, .generation = 7, .is_receivers = false});
  }
  EXPECT_TRUE(runs.is_full());
  for (std::uint32_t packet : {16u, 12u, 8u}) EXPECT_EQ(runs.pop().packet, packet);
  EXPECT_TRUE(runs.empty());
  runs.set_limit(100);
  for (std::uint32_t i = 0; i < near::shm::KeptRuns::most; ++i) runs.push({});
  EXPECT_TRUE(runs.is_full());
}

} // namespace
