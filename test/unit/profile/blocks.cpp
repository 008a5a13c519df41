// The model of packing.
#include "profile/blocks.h"

#include "profile/profile.h"

#include <gtest/gtest.h>

#include <vector>

using namespace near;
using profile::Before;
using profile::BlockCosts;
using profile::Blocks;
using profile::CopyTerms;
using profile::Direction;
using profile::Spacing;
using profile::touched_bytes;

namespace {

/// A block takes 10 ns and 1 ns for each byte, twice as much if it is listed; more outside the first-level cache.
BlockCosts example_costs() {
  BlockCosts made;
  made.call = 14'000;
  made.first = {40'000, -20'000};
  made.caches = {32u << 10, 1u << 20, 32u << 20};
  const std::uint32_t more[] = {0, 1'000, 8'000, 90'000};
  for (std::size_t direction = 0; direction < profile::directions; ++direction)
    for (std::size_t spacing = 0; spacing < profile::spacings; ++spacing)
      for (std::size_t length = 0; length < profile::block_lengths.size(); ++length)
        for (std::size_t step = 0; step < profile::block_steps.size(); ++step)
          for (std::size_t level = 0; level < profile::levels; ++level)
            made.block[direction][spacing][length][step][level] =
                static_cast<std::uint32_t>(1 + spacing) * (10'000 + 1'000 * profile::block_lengths[length]) +
                more[level];
  return made;
}

CopyTerms copy_terms(const std::vector<Blocks>& blocks, Before before = Before::hot) {
  return predict_copy(example_costs(), Direction::gather, blocks, before);
}

TEST(PackingModel, adds_up_the_call_the_blocks_and_the_way_to_their_lines) {
  const auto few = copy_terms({{100, 8, 128, Spacing::equal}}); // 6.4 KiB of lines
  EXPECT_NEAR(few.start, 14, 1e-9);
  EXPECT_NEAR(few.addresses, 100 * 18, 1e-6);
  EXPECT_NEAR(few.memory, 0, 1e-6);
  EXPECT_NEAR(few.total(), 14 + 1800, 1e-6);
  const auto cold = copy_terms({{100, 8, 128, Spacing::equal}}, Before::cold);
  EXPECT_NEAR(cold.addresses, 100 * 18, 1e-6);
  EXPECT_NEAR(cold.memory, 100 * 90 + 40, 1e-6) << "it waits for the first line";
  EXPECT_NEAR(copy_terms({{8, 8, 128, Spacing::equal}}, Before::cold).memory, 8 * 90 + 40, 1e-6);
  auto scattered = [](std::uint64_t count) {
    const std::vector<Blocks> blocks = {{count, 8, 128, Spacing::equal}};
    return predict_copy(example_costs(), Direction::scatter, blocks, Before::cold).memory;
  };
  EXPECT_NEAR(scattered(100), 100 * 90 - 20, 1e-6) << "stores do not wait";
  EXPECT_GE(scattered(0), 0);
}

TEST(PackingModel, knows_that_stores_wait_once_there_are_more_than_a_processor_keeps) {
  BlockCosts costs = example_costs();
  costs.first[1] = -2'000'000;
  auto scattered = [&](std::uint64_t count) {
    const std::vector<Blocks> blocks = {{count, 8, 128, Spacing::equal}};
    return predict_copy(costs, Direction::scatter, blocks, Before::cold);
  };
  EXPECT_NEAR(scattered(10).memory, 0, 1e-6);
  const double sixteen = 16 * (10 + 64 + 90) - 2000; // lines of which a block has each
  for (std::uint64_t count : {14, 16, 20})
    EXPECT_NEAR(scattered(count).addresses + scattered(count).memory, sixteen, 1e-6) << count;
  EXPECT_NEAR(scattered(12).addresses + scattered(12).memory, sixteen / 2, 1e-6);
  EXPECT_NEAR(scattered(100).memory, 100 * 90 - 2000, 1e-6);
}

TEST(PackingModel, takes_the_caches_by_the_lines_that_are_touched) {
  auto more = [](std::uint64_t bytes) {
    return copy_terms({{bytes / 64, 8, 192, Spacing::equal}}).memory / static_cast<double>(bytes / 64);
  };
  EXPECT_NEAR(more(32u << 10), 0, 1e-6);
  EXPECT_NEAR(more(128u << 10), 1, 1e-6);
  EXPECT_NEAR(more(1u << 20), 1, 1e-6);
  EXPECT_NEAR(more(4u << 20), 8, 1e-6);
  EXPECT_NEAR(more(1u << 30), 90, 1e-6) << "no cache holds them";
  EXPECT_GT(more(2u << 20), 1);
  EXPECT_LT(more(2u << 20), 8);
}

TEST(PackingModel, never_jumps_between_what_was_measured_and_grows_with_the_bytes_beyond) {
  double before = 0;
  for (std::uint64_t bytes = 1; bytes <= 100'000; bytes += 1 + bytes / 50) {
    const double now =
        copy_terms({{1, bytes, 16.0 * static_cast<double>(bytes), Spacing::equal}}, Before::cold).total();
    EXPECT_GE(now, before) << bytes;
    if (before != 0) EXPECT_LT(now, 1.5 * before) << bytes;
    before = now;
  }
  EXPECT_NEAR(copy_terms({{1, 4096 * 4, 4096 * 64, Spacing::equal}}).addresses,
              4 * copy_terms({{1, 4096, 4096 * 16, Spacing::equal}}).addresses, 1);
}

TEST(PackingModel, adds_up_blocks_of_several_lengths_and_tells_lists_from_strides) {
  const Blocks strided{50, 16, 256, Spacing::equal}, listed{50, 16, 256, Spacing::listed};
  EXPECT_NEAR(copy_terms({listed}).addresses, 2 * copy_terms({strided}).addresses, 1e-6);
  EXPECT_NEAR(copy_terms({strided, listed}).addresses,
              copy_terms({strided}).addresses + copy_terms({listed}).addresses, 1e-6);
  EXPECT_NEAR(copy_terms({}).total(), 14, 1e-9);
  EXPECT_NEAR(copy_terms({{0, 8, 16, Spacing::equal}}).total(), 14, 1e-9);
}

TEST(PackingModel, counts_the_lines_that_blocks_touch) {
  EXPECT_EQ(touched_bytes({100, 8, 128, Spacing::equal}), 6400u);
  EXPECT_EQ(touched_bytes({100, 100, 1000, Spacing::equal}), 12'800u);
  EXPECT_EQ(touched_bytes({100, 8, 16, Spacing::equal}), 1592) << "several in each line";
  EXPECT_EQ(touched_bytes({1, 8, 8, Spacing::listed}), 64);
  EXPECT_EQ(touched_bytes({1, 1 << 20, 1 << 20, Spacing::listed}), 1 << 20);
  EXPECT_EQ(touched_bytes({11, 100, 10, Spacing::equal}), 200) << "they overlap";
  EXPECT_GT(touched_bytes({UINT64_MAX, 8, 1e6, Spacing::equal}), 1e20);
}

TEST(PackingModel, is_complete_only_if_everything_was_measured) {
  EXPECT_TRUE(example_costs().complete());
  EXPECT_FALSE(BlockCosts{}.complete());
  auto costs = example_costs();
  costs.call = 0;
  EXPECT_FALSE(costs.complete());
  costs = example_costs();
  costs.caches[2] = 0;
  EXPECT_FALSE(costs.complete());
  costs = example_costs();
  costs.first[1] = 0;
  EXPECT_FALSE(costs.complete());
  costs = example_costs();
  costs.block[1][1][12][3][3] = 0;
  EXPECT_FALSE(costs.complete());
}

TEST(PackingModel, is_read_from_a_profile_as_it_was_written) {
  profile::Profile made, read;
  made.machine = "a";
  made.measured = "b";
  made.blocks = example_costs();
  made.blocks.block[0][1][2][3][1] = 0;
  made.blocks.caches[1] = 0;
  ASSERT_TRUE(profile::parse(text_of(made), read).ok()) << base::failure_text();
  EXPECT_EQ(read.blocks, made.blocks);
  ASSERT_TRUE(profile::parse("near-profile 1\nmachine a\nmeasured b\nend\n", read).ok())
      << "older ones have none";
  EXPECT_EQ(read.blocks, BlockCosts{});
}

TEST(PackingModel, is_not_read_from_damaged_lines) {
  for (const char* line : {"blocks",
                           "blocks gather",
                           "blocks gather equal 8 16 1 2 3",
                           "blocks gather equal 8 16 1 2 3 4 5",
                           "blocks gather equal 7 16 1 2 3 4",
                           "blocks gather equal 8 17 1 2 3 4",
                           "blocks move equal 8 16 1 2 3 4",
                           "blocks gather random 8 16 1 2 3 4",
                           "blocks gather equal 8 16 1 2 3 0",
                           "call",
                           "call 0",
                           "call x",
                           "call 1 2",
                           "first",
                           "first gather",
                           "first gather 0",
                           "first up 1",
                           "caches 1 2",
                           "caches 1 2 3 4",
                           "caches a 2 3"}) {
    profile::Profile read;
    EXPECT_FALSE(
        profile::parse(std::string("near-profile 2\nmachine a\nmeasured b\n") + line + "\nend\n", read).ok())
        << line;
    EXPECT_EQ(base::failure_text(), "line 4 is damaged") << line;
  }
}

} // namespace
