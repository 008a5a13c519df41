// The pool of packets: which packets are taken, and when packets are added.
#include "shm/packet_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <sys/mman.h>
#include <vector>

namespace {

using near::shm::PacketFlag;
using near::shm::PacketPool;

constexpr std::uint32_t first_packets = 32, most = 200;
constexpr std::uint64_t packet_bytes = 16u << 10;
constexpr bool answered = false, in_stream = true;

class Pool : public testing::Test {
protected:
  void SetUp() override {
    void* at = mmap(nullptr, most * packet_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    memory_ = static_cast<std::byte*>(at);
    pool_.build(memory_, flags_.data(), first_packets, most, packet_bytes);
  }
  ~Pool() override { munmap(memory_, most * packet_bytes); }

  /// Takes a packet and returns it at once, as a receiver that keeps up does.
  void use(PacketPool::Taken taken) {
    ASSERT_TRUE(taken);
    flags_[taken.packet].give_back(taken.generation);
  }
  /// Takes all packets that eager messages may use, until there are none left, and returns them.
  void exhaust() {
    std::vector<PacketPool::Taken> taken;
    while (PacketPool::Taken next = pool_.take(4096, answered)) taken.push_back(next);
    for (auto& each : taken) use(each);
  }
  bool is_populated(std::uint32_t packet) const {
    unsigned char pages[packet_bytes / 4096] = {};
    EXPECT_EQ(mincore(memory_ + packet * packet_bytes, packet_bytes, pages), 0);
    return (pages[0] & pages[packet_bytes / 4096 - 1] & 1) != 0;
  }

  std::vector<PacketFlag> flags_{most};
  std::byte* memory_ = nullptr;
  PacketPool pool_;
};

TEST_F(Pool, messages_that_are_answered_cause_slow_growth) {
  for (int i = 0; i < 4000; ++i) {
    use(pool_.take(4096, answered));
    use(pool_.take_for_fragment(64u << 10));
  }
  EXPECT_EQ(pool_.count(), first_packets);
  for (int i = 0; i < 16'000; ++i) use(pool_.take(4096, answered));
  EXPECT_GT(pool_.count(), first_packets);
  EXPECT_LE(pool_.count(), first_packets + 20'000 / 4000);
}

TEST_F(Pool, streams_cause_growth_although_the_receiver_keeps_up) {
  for (int i = 0; i < 200; ++i) use(pool_.take(256, in_stream));
  EXPECT_EQ(pool_.count(), first_packets);
  for (int i = 0; i < 10'000; ++i) use(pool_.take(256, in_stream));
  EXPECT_GE(pool_.count(), first_packets + 30);
  EXPECT_LE(pool_.count(), first_packets + 10'200 / 200);
}

TEST_F(Pool, fragments_that_find_no_packet_cause_no_growth) {
  for (int i = 0; i < 1000; ++i) {
    std::vector<PacketPool::Taken> taken;
    while (PacketPool::Taken next = pool_.take_for_fragment(64u << 10)) taken.push_back(next);
    for (auto& each : taken) use(each);
  }
  EXPECT_EQ(pool_.count(), first_packets);
}

TEST_F(Pool, long_messages_add_packets_until_they_can_rotate_through_enough) {
  constexpr std::uint32_t enough = (1u << 20) / packet_bytes;
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_FALSE(pool_.has_long_turn(4u << 20));
    pool_.fragment_left((4u << 20) - 1, 1);
  }
  EXPECT_EQ(pool_.count(), first_packets);
  int fragments = 0;
  while (!pool_.has_long_turn(4u << 20)) {
    ASSERT_LT(++fragments, 100'000);
    use(pool_.take_for_fragment(4u << 20));
    pool_.fragment_left(4u << 20, 1);
  }
  EXPECT_EQ(pool_.count(), enough);
  EXPECT_GE(fragments, 250 * static_cast<int>(enough - first_packets)) << "each packet costs a system call";
  EXPECT_FALSE(pool_.has_long_turn((2u << 20) - 1));
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(pool_.has_long_turn(2u << 20));
    pool_.fragment_left(4u << 20, 1);
    use(pool_.take_for_fragment(4u << 20));
  }
  EXPECT_EQ(pool_.count(), enough);
}

TEST_F(Pool, an_eager_message_that_finds_no_packet_adds_one) {
  std::vector<PacketPool::Taken> taken;
  for (std::uint32_t before = pool_.count(); PacketPool::Taken next = pool_.take(4096, answered);
       before = pool_.count()) {
    taken.push_back(next);
    ASSERT_LE(pool_.count(), before + 1) << "one call adds one packet at most";
    if (pool_.count() > before) {
      EXPECT_EQ(next.packet, before);
      EXPECT_TRUE(is_populated(before));
    }
  }
  EXPECT_EQ(pool_.count(), most);
  EXPECT_EQ(taken.size(), most - PacketPool::reserve);
  EXPECT_FALSE(pool_.take(4096, answered));
  for (auto& each : taken) use(each);
  EXPECT_TRUE(pool_.take(4096, answered));
}

TEST_F(Pool, trains_without_packets_add_one_until_there_are_enough_for_several) {
  for (int i = 0; i < 10; ++i) pool_.add_for_trains(4);
  EXPECT_EQ(pool_.count(), first_packets) << "there are enough for four trains of four packets";
  pool_.add_for_trains(8);
  EXPECT_EQ(pool_.count(), first_packets + 1);
  EXPECT_TRUE(is_populated(first_packets));
  for (int i = 0; i < 100; ++i) pool_.add_for_trains(8);
  EXPECT_EQ(pool_.count(), PacketPool::reserve + 4 * 8);
  for (int i = 0; i < 100; ++i) pool_.add_for_trains(32);
  EXPECT_EQ(pool_.count(), 64u) << "as many as small jobs with a processor for each rank start with";
}

TEST_F(Pool, packets_without_memory_are_not_added) {
  // The memory behind the first packets cannot be populated.
  munmap(memory_ + first_packets * packet_bytes, (most - first_packets) * packet_bytes);
  for (int i = 0; i < 100; ++i) exhaust();
  pool_.add_for_trains(16);
  EXPECT_EQ(pool_.count(), first_packets);
}

TEST_F(Pool, the_first_messages_use_few_packets) {
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 30; ++i) {
    PacketPool::Taken taken = pool_.take(4096, answered);
    ASSERT_TRUE(taken);
    seen.insert(taken.packet);
    flags_[taken.packet].give_back(taken.generation);
  }
  EXPECT_EQ(seen.size(), 8u);
}

TEST_F(Pool, the_first_messages_use_all_packets_if_they_need_them) {
  std::set<std::uint32_t> seen;
  while (PacketPool::Taken taken = pool_.take(4096, answered)) seen.insert(taken.packet);
  EXPECT_EQ(seen.size(), most - PacketPool::reserve);
}

TEST_F(Pool, packets_are_used_in_rotation) {
  for (int i = 0; i < 200; ++i) use(pool_.take(4096, answered));
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < first_packets - PacketPool::reserve; ++i) {
    PacketPool::Taken taken = pool_.take(4096, answered);
    ASSERT_TRUE(taken);
    EXPECT_TRUE(seen.insert(taken.packet).second) << taken.packet << " was taken twice in a round";
    flags_[taken.packet].give_back(taken.generation);
  }
}

TEST_F(Pool, short_messages_stay_within_few_packets_as_long_as_they_find_one) {
  PacketPool large;
  large.build(memory_, flags_.data(), most, most, packet_bytes);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 5000; ++i) {
    PacketPool::Taken taken = large.take(256, answered);
    ASSERT_TRUE(taken);
    seen.insert(taken.packet);
    flags_[taken.packet].give_back(taken.generation);
  }
  EXPECT_EQ(seen.size(), 32 - PacketPool::reserve);
  seen.clear();
  while (PacketPool::Taken taken = large.take(256, answered)) seen.insert(taken.packet);
  EXPECT_EQ(seen.size(), most - PacketPool::reserve);
}

class Runs : public Pool {
protected:
  void return_run(PacketPool::Taken run) {
    for (std::uint32_t i = 0; i < PacketPool::run; ++i) flags_[run.packet + i].give_back(run.generation);
  }
};

TEST_F(Runs, are_packets_side_by_side_outside_the_reserve) {
  std::set<std::uint32_t> packets;
  while (PacketPool::Taken run = pool_.take_run()) {
    EXPECT_EQ(run.packet % PacketPool::run, 0u);
    for (std::uint32_t i = 0; i < PacketPool::run; ++i) {
      EXPECT_TRUE(packets.insert(run.packet + i).second) << "packet " << run.packet + i << " was taken twice";
    }
  }
  EXPECT_EQ(packets.size(), first_packets - PacketPool::reserve);
  EXPECT_EQ(*packets.begin(), PacketPool::reserve);
  EXPECT_EQ(*packets.rbegin(), first_packets - 1);
}

TEST_F(Runs, of_packets_with_different_generations_get_one_that_none_of_them_had) {
  // One use of packet 8, two of packet 9, and so on, so that their generations differ by one, and any increment meets another one's.
  for (std::uint32_t uses = 1; uses < 600; ++uses) {
    PacketPool::Taken run = pool_.take_run();
    ASSERT_TRUE(run) << "after " << uses;
    for (std::uint32_t i = 0; i < PacketPool::run; ++i)
      EXPECT_FALSE(flags_[run.packet + i].is_home(run.generation))
          << "packet " << run.packet + i << " looks free";
    return_run(run);
    for (std::uint32_t i = 0; i < uses % 5; ++i) use(pool_.take_for_fragment(0));
  }
}

TEST_F(Runs, need_all_of_their_packets) {
  std::vector<PacketPool::Taken> singles;
  while (PacketPool::Taken single = pool_.take(4096, answered)) {
    singles.push_back(single);
    if (pool_.count() > first_packets) break;
  }
  // One packet of each run is still out.
  for (PacketPool::Taken single : singles)
    if (single.packet % PacketPool::run != 2) use(single);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(pool_.take_run());
  for (PacketPool::Taken single : singles)
    if (single.packet % PacketPool::run == 2) use(single);
  EXPECT_TRUE(pool_.take_run());
}

TEST_F(Runs, that_were_not_sent_can_be_taken_again) {
  std::vector<PacketPool::Taken> all;
  while (PacketPool::Taken run = pool_.take_run()) all.push_back(run);
  pool_.put_back_run(all[1]);
  const PacketPool::Taken again = pool_.take_run();
  ASSERT_TRUE(again);
  EXPECT_EQ(again.packet, all[1].packet);
  EXPECT_FALSE(pool_.take_run());
}

TEST_F(Runs, are_not_made_of_packets_that_are_long_themselves) {
  EXPECT_TRUE(pool_.uses_runs(2u << 20));
  EXPECT_FALSE(pool_.uses_runs((2u << 20) - 1));
  PacketPool long_ones;
  std::vector<PacketFlag> flags(first_packets);
  long_ones.build(memory_, flags.data(), first_packets, first_packets, 512u << 10);
  EXPECT_FALSE(long_ones.uses_runs(1u << 30));
  EXPECT_FALSE(long_ones.take_run()) << "1 MiB of these packets are not more than the reserve";
}

TEST_F(Runs, count_as_their_packets_for_growth) {
  const std::uint32_t before = pool_.count();
  for (int i = 0; i < 64; ++i) pool_.fragment_left(4u << 20, PacketPool::run);
  EXPECT_EQ(pool_.count(), before + 1);
}

} // namespace
