// The stores for what a long message brings: which turns use which, with costs that are made up.
#include "shm/store_turns.h"
#include "shm/asked_for.h"

#include <gtest/gtest.h>

namespace {

using near::copy::Store;
using near::shm::AskedFor;
using near::shm::StoreTurns;

/// So many turns at these costs; returns how many went past the cache.
int run(StoreTurns& turns, int count, float cached, float past) {
  int gone_past = 0;
  for (int i = 0; i < count; ++i) {
    const bool goes_past = turns.next() == Store::streaming;
    gone_past += goes_past;
    turns.note(goes_past ? past : cached);
  }
  return gone_past;
}

TEST(StoreTurns, begin_with_cached_stores_and_stay_with_them_if_nothing_is_gained) {
  StoreTurns turns(Store::cached, 8);
  EXPECT_EQ(run(turns, 8, 40, 38), 0);
  EXPECT_LE(run(turns, 1000, 40, 38), 30);
  EXPECT_EQ(turns.present(), Store::cached);
}

TEST(StoreTurns, change_to_what_costs_less) {
  StoreTurns turns(Store::cached, 8);
  EXPECT_GE(run(turns, 1000, 40, 30), 950);
  EXPECT_EQ(turns.present(), Store::streaming);
}

TEST(StoreTurns, change_back_soon_when_the_program_or_the_machine_changes) {
  StoreTurns turns(Store::cached, 8);
  run(turns, 1000, 40, 30);
  EXPECT_LE(run(turns, 100, 60, 100), 20) << "cached stores cost more than before, but less than the others";
  run(turns, 1000, 60, 100);
  EXPECT_GE(run(turns, 100, 120, 60), 80);
}

TEST(StoreTurns, do_not_mind_a_turn_that_was_interrupted) {
  StoreTurns turns(Store::cached, 8);
  int past = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool goes_past = turns.next() == Store::streaming;
    past += goes_past;
    turns.note(i % 5 == 0 ? 500 : goes_past ? 45 : 40);
  }
  EXPECT_EQ(turns.present(), Store::cached);
  EXPECT_LE(past, 30);
}

TEST(StoreTurns, seldom_try_the_dearer_kind_although_the_pauses_of_the_program_vary) {
  for (const int period : {2, 8}) {
    StoreTurns turns(Store::cached, 16);
    int past = 0;
    for (int i = 0; i < 4000; ++i) {
      const bool goes_past = turns.next() == Store::streaming;
      past += goes_past;
      turns.note((goes_past ? 60.0f : 40.0f) + (i / period % 2 == 0 ? 0.0f : 60.0f));
    }
    EXPECT_LE(past, 600) << period;
  }
}

TEST(StoreTurns, give_a_trial_up_when_turns_can_no_longer_be_measured) {
  StoreTurns turns(Store::cached, 8);
  while (turns.next() == Store::cached) turns.note(40);
  turns.skip();
  EXPECT_EQ(turns.next(), Store::cached);
  EXPECT_EQ(run(turns, 7, 40, 30), 0);
  EXPECT_GE(run(turns, 100, 40, 30), 50) << "it comes again";
}

TEST(StoreTurns, do_not_judge_by_the_first_turn_of_a_trial) {
  StoreTurns turns(Store::cached, 8);
  int in_a_row = 0;
  for (int i = 0; i < 200; ++i) {
    const bool goes_past = turns.next() == Store::streaming;
    in_a_row = goes_past ? in_a_row + 1 : 0;
    turns.note(!goes_past ? 40 : in_a_row == 1 ? 200 : 30);
  }
  EXPECT_EQ(turns.present(), Store::streaming);
}

constexpr std::uint64_t mib = 1 << 20;

/// A message alone on its way; returns the stores for its last bytes.
Store message(AskedFor& asked, std::uint64_t bytes) {
  asked.add(bytes);
  const Store stores = asked.stores(bytes);
  asked.remove(bytes);
  return stores;
}

TEST(AskedFor, goes_past_the_cache_with_what_surely_does_not_fit_and_never_with_little) {
  AskedFor asked(32 * mib);
  EXPECT_EQ(message(asked, 16 * mib), Store::streaming);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(message(asked, 32 * mib), Store::streaming);
    EXPECT_EQ(message(asked, 4 * mib - 1), Store::cached);
  }
  AskedFor small(2 * mib);
  EXPECT_EQ(message(small, mib - 1), Store::cached) << "no cache is that small";
}

TEST(AskedFor, tries_both_in_between) {
  for (const std::uint64_t bytes : {8 * mib, 16 * mib}) {
    AskedFor asked(32 * mib);
    int past = 0;
    for (int i = 0; i < 200; ++i) past += message(asked, bytes) == Store::streaming;
    EXPECT_GE(past, 2) << bytes;
    EXPECT_LE(past, 198) << bytes;
  }
}

TEST(AskedFor, counts_what_is_on_its_way_together) {
  AskedFor asked(32 * mib);
  for (int i = 0; i < 15; ++i) asked.add(mib);
  EXPECT_EQ(asked.stores(mib), Store::cached);
  asked.add(mib);
  EXPECT_EQ(asked.stores(mib), Store::streaming);
  for (int i = 0; i < 15; ++i) asked.remove(mib);
  EXPECT_EQ(asked.stores(mib), Store::streaming) << "the last message of the window";
  asked.remove(mib);
  EXPECT_EQ(asked.most(), 0u);
}

TEST(AskedFor, cuts_an_endless_stream_into_turns) {
  AskedFor asked(32 * mib);
  asked.add(4 * mib);
  int past = 0;
  for (int i = 0; i < 1000; ++i) {
    asked.add(4 * mib);
    past += asked.stores(4 * mib) == Store::streaming;
    asked.remove(4 * mib);
  }
  EXPECT_GE(past, 3) << "otherwise the stores would never be tried";
}

} // namespace
