// Whether targets are waited for, or woken, after they have not answered.
#include "rma/patience.h"

#include <gtest/gtest.h>

namespace near::rma {
namespace {

/// How many times in a row it does not try.
int pauses(Patience& patience) {
  int count = 0;
  while (!patience.tries()) ++count;
  return count;
}

TEST(patience, pauses_become_longer_until_it_succeeds) {
  Patience patience;
  EXPECT_FALSE(patience.has_failed());
  for (const int expected : {1, 2, 4, 8, 16, 32, 64, 64}) {
    patience.failed();
    EXPECT_TRUE(patience.has_failed());
    EXPECT_EQ(pauses(patience), expected);
  }
  patience.succeeded();
  EXPECT_FALSE(patience.has_failed());
  EXPECT_EQ(pauses(patience), 0);
  patience.failed();
  EXPECT_EQ(pauses(patience), 1);
}

/// Lets 16 completions begin, `interval` ns apart; returns whether the last of them would wake the target.
bool sixteen(Waking& waking, std::uint64_t& now, std::uint64_t interval) {
  for (int i = 0; i < 15; ++i, now += interval) EXPECT_FALSE(waking.begins(now));
  now += interval;
  return waking.begins(now);
}

TEST(patience, a_target_is_woken_if_completions_follow_each_other) {
  std::uint64_t now = 1'000'000;
  Waking waking;
  EXPECT_TRUE(sixteen(waking, now, 3'000));
  EXPECT_TRUE(waking.tries());
  EXPECT_FALSE(sixteen(waking, now, 100'000)) << "they are too far apart";
  EXPECT_TRUE(sixteen(waking, now, 3'000));
}

TEST(patience, an_answer_begins_the_count_again) {
  std::uint64_t now = 0;
  Waking waking;
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(waking.begins(now += 1000));
  waking.answered();
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(waking.begins(now += 1000));
  EXPECT_TRUE(waking.begins(now += 1000));
}

TEST(patience, a_target_that_sleeps_at_once_is_woken_less_and_less_often) {
  Waking waking;
  int woken = 0;
  for (int i = 0; i < 200; ++i) {
    if (waking.tries()) ++woken;
    waking.answered(); // once, and then it sleeps again
    waking.not_answered();
  }
  EXPECT_EQ(woken, 9); // after 0, 1, 2, 4, ... 64, 64 pauses
}

TEST(patience, a_target_that_goes_on_answering_is_woken_each_time) {
  Waking waking;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(waking.tries());
    for (int j = 0; j < 64; ++j) waking.answered();
    waking.not_answered();
  }
}

} // namespace
} // namespace near::rma
