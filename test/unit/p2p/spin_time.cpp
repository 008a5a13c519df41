#include "transport/spin_time.h"

#include <gtest/gtest.h>

namespace near::transport {
namespace {

constexpr std::uint64_t one_us = 1000, usual = 100 * one_us;

TEST(spin_time, grows_after_two_sleeps_that_ended_soon) {
  SpinTime time;
  EXPECT_EQ(time.after_sleep(usual, 150 * one_us, true), usual);
  EXPECT_EQ(time.after_sleep(usual, 200 * one_us, true), 400 * one_us);
  EXPECT_EQ(time.after_sleep(400 * one_us, 300 * one_us, true), 600 * one_us);
}

TEST(spin_time, has_a_bound_and_never_shrinks_after_a_short_sleep) {
  SpinTime time;
  (void)time.after_sleep(usual, 900 * one_us, true);
  EXPECT_EQ(time.after_sleep(usual, 900 * one_us, true), SpinTime::longest_ns);
  EXPECT_EQ(time.after_sleep(SpinTime::longest_ns, 120 * one_us, true), SpinTime::longest_ns);
  SpinTime patient; // NEAR_SPIN=5000
  (void)patient.after_sleep(5000 * one_us, 300 * one_us, true);
  EXPECT_EQ(patient.after_sleep(5000 * one_us, 300 * one_us, true), 5000 * one_us);
}

TEST(spin_time, is_the_usual_one_again_after_a_long_sleep) {
  SpinTime time;
  (void)time.after_sleep(usual, 150 * one_us, true);
  EXPECT_EQ(time.after_sleep(usual, 150 * one_us, true), 300 * one_us);
  EXPECT_EQ(time.after_sleep(300 * one_us, SpinTime::longest_ns + 1, true), usual);
  EXPECT_EQ(time.after_sleep(usual, 150 * one_us, true), usual) << "one short sleep among long ones";
  EXPECT_EQ(time.after_sleep(usual, 10'000 * one_us, false), usual);
  EXPECT_EQ(time.after_sleep(usual, 150 * one_us, true), usual);
}

TEST(spin_time, is_not_changed_by_naps) {
  SpinTime time;
  for (int nap = 0; nap < 5; ++nap) EXPECT_EQ(time.after_sleep(usual, 120 * one_us, false), usual);
}

} // namespace
} // namespace near::transport
