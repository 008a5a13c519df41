// The ranks of one machine as text.
#include "boot/rank_list.h"

#include <gtest/gtest.h>

#include <random>

namespace near::boot {
namespace {

TEST(RankList, ranges_and_steps_are_short) {
  EXPECT_EQ(rank_list_text({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(rank_list_text({0, 1, 2, 3, 8, 12, 16, 20}), "0-3,8-20:4");
  EXPECT_EQ(rank_list_text({5}), "5");
  EXPECT_EQ(rank_list_text({1, 4}), "1,4");
  EXPECT_EQ(rank_list_text({1, 2}), "1-2");
}

TEST(RankList, any_list_is_read_as_it_was_written) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint32_t> ranks, read;
    std::uint32_t next = random() % 3;
    for (unsigned count = 1 + random() % 20; count > 0; --count) {
      ranks.push_back(next);
      next += 1 + random() % 3;
    }
    const std::string text = rank_list_text(ranks);
    ASSERT_TRUE(read_rank_list(text, next, read).ok()) << text << base::failure_text();
    ASSERT_EQ(read, ranks) << text;
  }
}

TEST(RankList, other_texts_are_refused) {
  std::vector<std::uint32_t> ranks;
  for (const char* text :
       {"", ",", "0,", "a", "3-1", "0-8:0", "0-8:", "1,1", "4,2", "0-10", "0-3,2", "0 ", "4294967296"})
    EXPECT_FALSE(read_rank_list(text, 10, ranks).ok()) << text;
}

} // namespace
} // namespace near::boot
