// The model of long messages.
#include "profile/messages.h"

#include <gtest/gtest.h>

#include <vector>

using namespace near;
using profile::Blocks;
using profile::Kind;
using profile::MessageTerms;
using profile::Profile;
using profile::Spacing;
using segment::Distance;

namespace {

constexpr auto shared_cache = static_cast<std::size_t>(Distance::l3);

/// Each block takes 1 ns and 0.01 ns for each byte to gather, twice as much to scatter. Messages take 40 us for a MiB.
Profile example_times() {
  Profile made;
  made.blocks.call = 1;
  made.blocks.first = {1, 1};
  made.blocks.caches = {32u << 10, 1u << 20, 32u << 20};
  for (std::uint32_t direction = 0; direction < profile::directions; ++direction)
    for (auto& table : made.blocks.block[direction])
      for (std::size_t length = 0; length < profile::block_lengths.size(); ++length)
        for (auto& row : table[length])
          row.fill((1 + direction) * (1000 + 10 * profile::block_lengths[length]));
  for (std::size_t size : {0u, 2u, 4u, 8u}) made.cost[shared_cache][size][0] = {30000, 40000, 50000, 80000};
  return made;
}

MessageTerms message_terms(const Profile& profile, std::uint64_t count, std::uint64_t bytes) {
  const std::vector<Blocks> blocks = {{count, bytes, 16.0 * static_cast<double>(bytes), Spacing::equal}};
  return predict_message(profile, Distance::l3, blocks, count * bytes);
}

TEST(MessageModel, takes_the_longest_of_what_happens_at_the_same_time) {
  const auto one = message_terms(example_times(), 131072, 8); // 1 MiB
  EXPECT_EQ(one.kind, Kind::pipelined_cached);
  EXPECT_NEAR(one.transfer, 40'000, 1);
  EXPECT_NEAR(one.packing, 131072 * 1.08, 1);
  EXPECT_NEAR(one.unpacking, 2 * 131072 * 1.08, 1);
  EXPECT_NEAR(one.overlap, one.transfer + one.packing, 1e-6);
  EXPECT_NEAR(one.total(), one.unpacking, 1e-6);
}

TEST(MessageModel, of_consecutive_bytes_is_what_was_measured) {
  const auto one = message_terms(example_times(), 1, 1 << 20);
  EXPECT_NEAR(one.total(), 40'000, 1);
}

TEST(MessageModel, knows_that_two_processes_share_the_last_level_cache) {
  Profile profile = example_times();
  for (auto& direction : profile.blocks.block)
    for (auto& table : direction)
      for (auto& length : table)
        for (auto& row : length) row[3] = 10 * row[0]; // memory
  // 8 MiB of lines fit into a quarter of the cache, those of two processes do not.
  const std::vector<Blocks> blocks = {{131072, 8, 128, Spacing::equal}};
  profile.cost[static_cast<std::size_t>(Distance::machine)] = profile.cost[shared_cache];
  const auto near = predict_message(profile, Distance::l3, blocks, 1 << 20),
             far = predict_message(profile, Distance::machine, blocks, 1 << 20);
  EXPECT_NEAR(far.packing, 131072 * 1.08, 1);
  EXPECT_GT(near.packing, 2 * far.packing);
}

TEST(MessageModel, takes_the_faster_stores_and_the_nearest_sizes) {
  Profile profile = example_times();
  for (auto& sources : profile.cost[shared_cache])
    sources[0][static_cast<std::size_t>(Kind::pipelined_streaming)] = 0;
  profile.cost[shared_cache][4][0] = {0, 60000, 20000, 0}; // 64 KiB
  profile.cost[shared_cache][8][0] = {0, 40000, 40000, 0};
  EXPECT_EQ(message_terms(profile, 1, 64 << 10).kind, Kind::pipelined_streaming);
  EXPECT_NEAR(message_terms(profile, 1, 64 << 10).transfer, 20000.0 / 16, 1);
  EXPECT_NEAR(message_terms(profile, 1, 256 << 10).transfer, 30000.0 / 4, 1) << "half way between the two";
  EXPECT_NEAR(message_terms(profile, 1, 64 << 20).transfer, 64 * 40000.0, 64) << "beyond the last one";
  EXPECT_NEAR(message_terms(profile, 1, 20000).transfer, 20000 * 20000.0 / (1 << 20), 1)
      << "below the first one of these stores";
}

/// Short messages take 100 ns, and from 1 KiB on 0.1 ns for each byte.
Profile with_short_messages() {
  Profile made = example_times();
  made.short_time[shared_cache] = {100'000, 100'000, 100'000, 102'400, 409'600, 1'638'400};
  return made;
}

TEST(MessageModel, packs_a_short_message_before_it_leaves_instead_of_copying_it) {
  const auto one = message_terms(with_short_messages(), 128, 8); // 1 KiB
  EXPECT_TRUE(one.whole);
  EXPECT_NEAR(one.transfer, 102.4, 0.01);
  EXPECT_NEAR(one.packing, 128 * 1.08 + 0.001, 0.01);
  EXPECT_NEAR(one.unpacking, 2 * 128 * 1.08 + 0.001, 0.01);
  EXPECT_NEAR(one.overlap, 3 * (1 + 0.01 * 1024) + 0.002, 0.01) << "two copies of consecutive bytes";
  EXPECT_NEAR(message_terms(with_short_messages(), 1, 1024).total(), 102.4, 0.01) << "of consecutive bytes";
}

TEST(MessageModel, interpolates_short_messages) {
  const Profile profile = with_short_messages();
  EXPECT_NEAR(message_terms(profile, 1, 2048).transfer, 204.8, 0.01);
  EXPECT_NEAR(message_terms(profile, 1, 8192).transfer, 819.2, 0.01);
  EXPECT_NEAR(message_terms(profile, 1, 16384).transfer, 1638.4, 0.01);
  EXPECT_NEAR(message_terms(profile, 1, 1).transfer, 100, 0.01) << "below the first one";
  EXPECT_FALSE(message_terms(profile, 1, 16385).whole);
}

TEST(MessageModel, knows_what_was_measured) {
  EXPECT_TRUE(knows_messages(example_times(), Distance::l3, 1 << 20));
  EXPECT_FALSE(knows_messages(example_times(), Distance::l3, 1000));
  EXPECT_TRUE(knows_messages(with_short_messages(), Distance::l3, 1000));
  Profile in_part = example_times();
  in_part.short_time[shared_cache] = {0, 0, 0, 102'400, 0, 0};
  EXPECT_TRUE(knows_messages(in_part, Distance::l3, 1024));
  EXPECT_FALSE(knows_messages(in_part, Distance::l3, 1025));
  EXPECT_FALSE(knows_messages(in_part, Distance::l3, 1023));
  EXPECT_FALSE(knows_messages(with_short_messages(), Distance::machine, 1000));
  EXPECT_FALSE(knows_messages(example_times(), Distance::machine, 1 << 20));
  EXPECT_FALSE(knows_messages(Profile{}, Distance::l3, 1 << 20));
}

} // namespace
