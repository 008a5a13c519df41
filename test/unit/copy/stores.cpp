// The choice between cached and streaming stores, with times that are made up.
#include "base/knob.h"
#include "copy/store_policy.h"
#include "os/clock.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

using namespace near;
using copy::Store;
using copy::StorePolicy;

namespace {

constexpr std::uint64_t ms = 1'000'000;

/// Makes `count` copies that take so long. Returns how many used streaming stores.
int use(StorePolicy& policy, int count, std::uint64_t cached_ns, std::uint64_t streaming_ns) {
  int streaming = 0;
  for (int i = 0; i < count; ++i) {
    StorePolicy::Use use = policy.begin();
    const bool is_streaming = use.stores == Store::streaming;
    if (use.since_ns != 0) use.since_ns = os::monotonic_ns() - (is_streaming ? streaming_ns : cached_ns);
    policy.end(use, 4096);
    streaming += is_streaming;
  }
  return streaming;
}

} // namespace

TEST(StorePolicy, begins_with_what_the_profile_says_if_it_says_anything) {
  StorePolicy stores(Store::streaming, 3);
  stores.begin_with({0, 30000});
  EXPECT_TRUE(stores.streaming());
  stores.begin_with({27000, 33000});
  EXPECT_FALSE(stores.streaming());
  EXPECT_FLOAT_EQ(stores.cost(true), 33000.0f / 1024);
  stores.begin_with({650000, 39000});
  EXPECT_TRUE(stores.streaming());
}

TEST(StorePolicy, keeps_what_was_tried_first_while_it_is_the_better_one) {
  StorePolicy cached(Store::cached, 1.3f), streaming(Store::streaming, 1.3f);
  EXPECT_LE(use(cached, 1000, 20 * ms, 20 * ms), 10);
  EXPECT_GE(use(streaming, 1000, 100 * ms, 20 * ms), 990);
}

TEST(StorePolicy, changes_within_a_few_copies_and_back_when_the_times_change) {
  StorePolicy policy(Store::cached, 1.3f);
  EXPECT_GE(use(policy, 1000, 200 * ms, 20 * ms), 980);
  EXPECT_TRUE(policy.streaming());
  use(policy, 1000, 20 * ms, 50 * ms);
  EXPECT_FALSE(policy.streaming());
  EXPECT_LE(use(policy, 1000, 20 * ms, 50 * ms), 4);
}

TEST(StorePolicy, obeys_the_knob_whatever_the_profile_says) {
  for (const bool streaming : {false, true}) {
    std::string entry = std::string("NEAR_STORES=") + (streaming ? "streaming" : "cached");
    char* environment[] = {entry.data(), nullptr};
    ASSERT_TRUE(base::read_knobs(environment).ok());
    StorePolicy policy(Store::streaming, 3);
    policy.begin_with(streaming ? std::array{27000u, 33000u} : std::array{650000u, 39000u});
    use(policy, 1, 20 * ms, 20 * ms);
    EXPECT_EQ(use(policy, 1000, 20 * ms, 20 * ms), streaming ? 1000 : 0);
  }
  char* none[] = {nullptr};
  ASSERT_TRUE(base::read_knobs(none).ok());
}

TEST(StorePolicy, ignores_a_copy_that_was_interrupted) {
  StorePolicy policy(Store::cached, 1.3f);
  use(policy, 1000, 20 * ms, 20 * ms);
  StorePolicy::Use interrupted{Store::cached, os::monotonic_ns() - 500 * ms};
  policy.end(interrupted, 4096);
  EXPECT_FALSE(policy.streaming());
  EXPECT_LE(use(policy, 1000, 20 * ms, 20 * ms), 20);
}

TEST(StorePolicy, takes_streaming_stores_only_if_they_are_better_by_the_factor) {
  StorePolicy packets(Store::streaming, 3), slices(Store::cached, 1.3f);
  use(packets, 100, 200 * ms, 100 * ms);
  use(slices, 100, 200 * ms, 100 * ms);
  EXPECT_FALSE(packets.streaming());
  EXPECT_TRUE(slices.streaming());
}

TEST(StorePolicy, stays_with_cached_stores_between_the_two_bounds) {
  StorePolicy policy(Store::streaming, {.leave = 3, .enter = 5, .settling = 64});
  while (policy.streaming()) use(policy, 1, 400 * ms, 100 * ms);
  use(policy, 1000, 250 * ms, 100 * ms);
  EXPECT_FALSE(policy.streaming());
  while (!policy.streaming()) use(policy, 1, 400 * ms, 100 * ms);
}

TEST(StorePolicy, begins_with_the_kind_that_it_would_not_leave) {
  StorePolicy policy(Store::streaming, {.leave = 3, .enter = 5, .settling = 64});
  policy.begin_with({40000, 10000});
  EXPECT_TRUE(policy.streaming());
  policy.begin_with({20000, 10000});
  EXPECT_FALSE(policy.streaming());
}

TEST(StorePolicy, measures_cached_stores_again_only_when_they_have_settled) {
  StorePolicy policy(Store::streaming, {.leave = 3, .enter = 5, .settling = 64});
  while (policy.streaming()) use(policy, 1, 400 * ms, 100 * ms);
  // So many copies still cost what they did before.
  EXPECT_EQ(use(policy, 64, 400 * ms, 100 * ms), 0);
  EXPECT_LE(use(policy, 1000, 100 * ms, 100 * ms), 8);
  EXPECT_FALSE(policy.streaming());
}

TEST(StorePolicy, returns_to_cached_stores_less_and_less_readily) {
  StorePolicy policy(Store::streaming, {.leave = 3, .enter = 5, .settling = 8});
  // Cached stores look cheap while the others are in use, and are expensive then.
  std::vector<int> attempts;
  for (int copy = 0; attempts.size() < 8; ++copy) {
    const bool before = policy.streaming();
    use(policy, 1, (before ? 400 : 900) * ms, 100 * ms);
    if (before && !policy.streaming()) attempts.push_back(copy);
  }
  EXPECT_GT(attempts[7] - attempts[6], 4 * (attempts[1] - attempts[0]));
  // What lasts is believed.
  use(policy, 20000, 100 * ms, 100 * ms);
  EXPECT_FALSE(policy.streaming());
}

TEST(StorePolicy, obeys_the_knob_before_the_first_measurement) {
  for (const bool streaming : {false, true}) {
    std::string entry = std::string("NEAR_STORES=") + (streaming ? "streaming" : "cached");
    char* environment[] = {entry.data(), nullptr};
    ASSERT_TRUE(base::read_knobs(environment).ok());
    StorePolicy policy(streaming ? Store::cached : Store::streaming, 3);
    policy.begin_with({0, 0});
    EXPECT_EQ(policy.present(), streaming ? Store::streaming : Store::cached);
  }
  char* none[] = {nullptr};
  ASSERT_TRUE(base::read_knobs(none).ok());
}
