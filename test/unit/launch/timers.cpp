// The supervisor's list of timers.
#include "launch/timers.h"

#include <gtest/gtest.h>

using near::launch::Timer;
using near::launch::Timers;

namespace {

std::vector<Timer> due_at(Timers& timers, std::uint64_t now_ns) {
  std::vector<Timer> taken;
  for (Timers::Due due{}; timers.take(now_ns, due);) taken.push_back(due.timer);
  return taken;
}

TEST(timers, no_timer_is_due_in_an_empty_list) {
  Timers timers;
  EXPECT_EQ(timers.next_ns(), Timers::never);
  EXPECT_TRUE(due_at(timers, Timers::never - 1).empty());
}

TEST(timers, the_earliest_is_taken_first_and_only_once) {
  Timers timers;
  timers.set(Timer::kill, 30);
  timers.set(Timer::poll, 20);
  timers.set(Timer::terminate, 10);
  EXPECT_EQ(timers.next_ns(), 10u);
  EXPECT_TRUE(due_at(timers, 9).empty());
  EXPECT_EQ(due_at(timers, 20), (std::vector{Timer::terminate, Timer::poll}));
  EXPECT_TRUE(due_at(timers, 29).empty());
  EXPECT_EQ(due_at(timers, 30), std::vector{Timer::kill});
}

TEST(timers, those_of_one_instant_are_taken_in_the_order_of_their_kinds) {
  Timers timers;
  timers.set(Timer::kill, 10);
  timers.set(Timer::time_out, 10);
  timers.set(Timer::wrapper, 10, 3);
  EXPECT_EQ(due_at(timers, 10), (std::vector{Timer::wrapper, Timer::time_out, Timer::kill}));
}

TEST(timers, a_timer_that_is_set_again_is_due_at_the_new_time_only) {
  Timers timers;
  timers.set(Timer::kill, 10);
  timers.set(Timer::kill, 50);
  EXPECT_TRUE(due_at(timers, 49).empty());
  EXPECT_EQ(due_at(timers, 50), std::vector{Timer::kill});
}

TEST(timers, each_rank_has_its_own) {
  Timers timers;
  timers.set(Timer::wrapper, 10, 1);
  timers.set(Timer::wrapper, 20, 2);
  timers.cancel(Timer::wrapper, 1);
  EXPECT_FALSE(timers.is_set(Timer::wrapper, 1));
  EXPECT_TRUE(timers.is_set(Timer::wrapper, 2));
  Timers::Due due{};
  ASSERT_TRUE(timers.take(20, due));
  EXPECT_EQ(due.rank, 2u);
}

TEST(timers, only_a_timer_that_is_set_can_be_advanced) {
  Timers timers;
  timers.advance(Timer::foreign, 5);
  EXPECT_FALSE(timers.is_set(Timer::foreign));
  timers.set(Timer::foreign, 100);
  timers.advance(Timer::foreign, 5);
  EXPECT_EQ(timers.next_ns(), 5u);
}

TEST(timers, all_but_one_can_be_cancelled_together) {
  Timers timers;
  timers.set(Timer::kill, 10);
  timers.set(Timer::give_up, 20);
  timers.set(Timer::wrapper, 5, 1);
  timers.keep_only(Timer::give_up);
  EXPECT_EQ(due_at(timers, 100), std::vector{Timer::give_up});
}

} // namespace
