// When a thread that polls yields because others want its processor: with simulated times.
#include "transport/competition.h"

#include <gtest/gtest.h>

namespace near::transport {
namespace {

constexpr std::uint64_t short_ns = 250, switch_ns = 2500;

/// Returns how many of `count` polls yield, if each yield takes so long.
int polls(Competition& competition, int count, std::uint64_t took_ns) {
  int yields = 0;
  for (int i = 0; i < count; ++i)
    if (competition.should_yield()) {
      competition.yielded(took_ns);
      ++yields;
    }
  return yields;
}

TEST(Competition, alone_a_thread_yields_now_and_then) {
  Competition competition;
  constexpr int turns = 10;
  EXPECT_EQ(polls(competition, turns * static_cast<int>(Competition::polls_between), short_ns), turns);
  EXPECT_FALSE(competition.exists());
}

TEST(Competition, a_yield_that_lets_others_run_is_followed_by_one_after_each_poll) {
  Competition competition;
  polls(competition, Competition::polls_between, short_ns);
  ASSERT_FALSE(competition.exists());
  polls(competition, Competition::polls_between, switch_ns);
  EXPECT_TRUE(competition.exists());
  EXPECT_EQ(polls(competition, 100, switch_ns), 100);
}

TEST(Competition, ends_after_a_number_of_short_yields_in_a_row) {
  Competition competition;
  polls(competition, Competition::polls_between, short_ns);
  polls(competition, Competition::polls_between, switch_ns);
  polls(competition, Competition::most_short - 1, short_ns);
  ASSERT_TRUE(competition.exists());
  polls(competition, 1, switch_ns); // and begins anew
  polls(competition, Competition::most_short - 1, short_ns);
  EXPECT_TRUE(competition.exists());
  polls(competition, 1, short_ns);
  EXPECT_FALSE(competition.exists());
}

TEST(Competition, does_not_take_slow_system_calls_for_switches) {
  Competition competition;
  polls(competition, 10 * Competition::polls_between, 1500);
  polls(competition, Competition::polls_between, 2500); // less than three times the usual time
  EXPECT_FALSE(competition.exists());
}

TEST(Competition, is_noticed_if_it_is_there_from_the_start) {
  Competition competition;
  polls(competition, Competition::polls_between, 50'000);
  EXPECT_TRUE(competition.exists());
}

} // namespace
} // namespace near::transport
