// When waits of ranks that share processors sleep at once, because yields take long: with simulated times.
#include "transport/long_turns.h"

#include <gtest/gtest.h>

namespace near::transport {
namespace {

constexpr std::uint64_t us = 1000, ms = 1000 * us;
std::uint64_t now = ms;
std::uint64_t read_clock() { return now; }

/// One wait that yields for `yield_ns`, or sleeps for `sleep_ns`. Returns whether it slept.
bool wait(LongTurns& turns, std::uint64_t yield_ns, std::uint64_t sleep_ns) {
  if (turns.begins_asleep(read_clock)) {
    now += sleep_ns;
    return true;
  }
  now += yield_ns;
  turns.yielded(yield_ns, now);
  return false;
}

/// Waits that yield for 5 us, but every tenth for 3 ms. Returns how many of them slept.
int waits_beside_a_program(LongTurns& turns, int count, std::uint64_t sleep_ns) {
  int slept = 0, yields = 0;
  for (int i = 0; i < count; ++i) {
    const bool sleeps = wait(turns, yields % 10 == 9 ? 3 * ms : 5 * us, sleep_ns);
    slept += sleeps;
    yields += !sleeps;
  }
  return slept;
}

TEST(LongTurns, without_a_long_yield_no_wait_sleeps) {
  LongTurns turns;
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(wait(turns, i % 2 == 0 ? 5 * us : 900 * us, us));
}

TEST(LongTurns, a_single_long_yield_is_borne) {
  LongTurns turns;
  ASSERT_FALSE(wait(turns, 5 * ms, us));
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(wait(turns, 5 * us, us));
}

TEST(LongTurns, nearly_all_waits_sleep_where_sleeps_cost_less) {
  LongTurns turns;
  waits_beside_a_program(turns, 4000, 30 * us);
  EXPECT_GT(waits_beside_a_program(turns, 10'000, 30 * us), 9'500);
}

TEST(LongTurns, few_waits_sleep_where_sleeps_cost_more) {
  LongTurns turns;
  waits_beside_a_program(turns, 4000, 2 * ms);
  const int slept = waits_beside_a_program(turns, 10'000, 2 * ms);
  EXPECT_GT(slept, 0);
  EXPECT_LT(slept, 500);
}

TEST(LongTurns, two_long_yields_of_one_wait_make_the_next_ones_sleep) {
  LongTurns turns;
  ASSERT_FALSE(turns.begins_asleep(read_clock));
  for (int i = 0; i < 2; ++i) turns.yielded(3 * ms, now += 3 * ms);
  EXPECT_TRUE(turns.asleep());
  now += 200 * ms; // the rest of this wait is no part of the waits that sleep
  for (std::uint32_t i = 0; i < LongTurns::fewest_sleeps; ++i) ASSERT_TRUE(wait(turns, us, 30 * us));
  EXPECT_FALSE(turns.begins_asleep(read_clock));
  for (std::uint32_t i = 0; i < LongTurns::fewest_borne; ++i) turns.yielded(3 * ms, now += 3 * ms);
  EXPECT_TRUE(turns.asleep()); // since sleeps cost less
}

TEST(LongTurns, a_wait_of_a_minute_that_is_left_out_changes_nothing) {
  for (const std::uint64_t sleep_ns : {2 * ms, 30 * us}) {
    LongTurns turns;
    waits_beside_a_program(turns, 4000, sleep_ns);
    now += 60'000 * ms;
    turns.leave_out(now - 60'000 * ms, now);
    const int slept = waits_beside_a_program(turns, 10'000, sleep_ns);
    EXPECT_TRUE(sleep_ns == 2 * ms ? slept < 500 : slept > 9'500) << slept;
  }
}

TEST(LongTurns, what_began_in_a_wait_that_is_left_out_begins_at_its_end) {
  LongTurns turns;
  ASSERT_FALSE(turns.begins_asleep(read_clock));
  const std::uint64_t since = now;
  turns.yielded(3 * ms, now += 3000 * ms); // the other program comes
  turns.leave_out(since, now += ms);
  turns.yielded(3 * ms, now += 3 * ms); // the waits took 3 ms
  ASSERT_TRUE(turns.asleep());
  for (std::uint32_t i = 0; i < LongTurns::fewest_sleeps; ++i) ASSERT_TRUE(wait(turns, us, 4 * ms));
  ASSERT_FALSE(turns.begins_asleep(read_clock)); // which is judged: sleeps cost more
  for (std::uint32_t i = 0; i < LongTurns::fewest_borne; ++i) turns.yielded(3 * ms, now += 3 * ms);
  EXPECT_FALSE(turns.asleep());
}

TEST(LongTurns, waits_that_are_left_out_do_not_keep_others_asleep) {
  LongTurns turns;
  waits_beside_a_program(turns, 4000, 30 * us);
  ASSERT_TRUE(turns.asleep());
  // The other program has gone.
  int slept = 0;
  for (int i = 0; i < 10'000; ++i) {
    slept += wait(turns, 5 * us, 30 * us);
    if (i % 100 == 0) {
      now += 150 * ms;
      turns.leave_out(now - 150 * ms, now);
    }
  }
  EXPECT_LE(slept, static_cast<int>(LongTurns::most_sleeps));
}

TEST(LongTurns, what_was_before_the_other_program_came_does_not_count) {
  for (const int quiet : {0, 10'000, 10'000'000}) {
    LongTurns turns;
    for (int i = 0; i < quiet; ++i) ASSERT_FALSE(wait(turns, 6 * us, us));
    waits_beside_a_program(turns, 4000, 30 * us);
    EXPECT_GT(waits_beside_a_program(turns, 10'000, 30 * us), 9'500) << quiet;
  }
}

TEST(LongTurns, time_without_competition_does_not_count) {
  LongTurns turns;
  waits_beside_a_program(turns, 4000, 2 * ms);
  now += 900 * ms; // waits of this time are not recorded
  turns.competition_begins();
  EXPECT_LT(waits_beside_a_program(turns, 10'000, 2 * ms), 500);
}

TEST(LongTurns, bursts_of_competition_do_not_wipe_what_is_known) {
  LongTurns turns;
  int slept = 0;
  for (int burst = 0; burst < 500; ++burst) {
    turns.competition_begins();
    turns.yielded(3 * ms, now += 3 * ms);
    for (int i = 1; i < 20; ++i) slept += wait(turns, i == 19 ? 3 * ms : 5 * us, 2 * ms);
  }
  EXPECT_LT(slept, 1000);
}

TEST(LongTurns, the_next_program_is_tried_with_few_sleeps) {
  LongTurns turns;
  waits_beside_a_program(turns, 10'000, 30 * us);
  while (wait(turns, 5 * us, 30 * us)) {}
  now += 2000 * ms;
  for (std::uint32_t i = 0; i < LongTurns::fewest_borne; ++i) turns.yielded(3 * ms, now += 3 * ms);
  std::uint32_t slept = 0;
  while (wait(turns, 5 * us, 30 * us)) ++slept;
  EXPECT_EQ(slept, LongTurns::fewest_sleeps);
}

TEST(LongTurns, waits_yield_again_when_the_other_program_has_gone) {
  LongTurns turns;
  waits_beside_a_program(turns, 4000, 30 * us);
  for (std::uint32_t i = 0; i < LongTurns::most_sleeps; ++i) wait(turns, 5 * us, 30 * us);
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(wait(turns, 5 * us, 30 * us));
}

} // namespace
} // namespace near::transport
