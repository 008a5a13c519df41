// How the number of waiting packets follows the messages.
#include "ofi/posted_count.h"

#include <gtest/gtest.h>

namespace near::ofi {
namespace {

constexpr std::uint32_t least = 8, most_found = 16;

TEST(PostedCount, doubles_with_each_burst_up_to_the_most) {
  PostedCount count;
  EXPECT_EQ(count.wanted(least), least);
  count.looked(7, most_found, least);
  EXPECT_EQ(count.wanted(least), least) << "a packet was left";
  for (std::uint32_t expected : {16u, 32u, 64u, 64u}) {
    count.looked(std::min(count.wanted(least), most_found), most_found, least);
    EXPECT_EQ(count.wanted(least), expected);
  }
}

TEST(PostedCount, halves_after_many_looks_in_a_row_that_find_few) {
  PostedCount count;
  for (int burst = 0; burst < 3; ++burst) count.looked(most_found, most_found, least);
  ASSERT_EQ(count.wanted(least), 64u);
  const auto quiet = [&](std::uint32_t looks) {
    for (std::uint32_t i = 0; i < looks; ++i) count.looked(1 + i % PostedCount::few, most_found, least);
  };
  quiet(PostedCount::looks_until_fewer - 1);
  count.looked(PostedCount::few + 1, most_found, least);
  quiet(PostedCount::looks_until_fewer - 1);
  count.looked(0, most_found, least);
  EXPECT_EQ(count.wanted(least), 64u) << "not enough in a row";
  quiet(1);
  EXPECT_EQ(count.wanted(least), 32u);
  quiet(10 * PostedCount::looks_until_fewer);
  EXPECT_EQ(count.wanted(least), least);
}

TEST(PostedCount, is_never_less_than_the_peers_need) {
  PostedCount count;
  EXPECT_EQ(count.wanted(20), 20u);
  count.looked(most_found, most_found, 20);
  EXPECT_EQ(count.wanted(20), 40u);
  EXPECT_EQ(count.wanted(50), 50u);
}

} // namespace
} // namespace near::ofi
