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

/// Asks for bytes, at a time that is made up.
struct Asker {
  AskedFor asked{32 * mib};
  std::uint64_t now_ns = 1'000'000'000;

  std::uint64_t last = 1;

  /// For the buffer with this number, or for another one each time.
  std::uint64_t add(std::uint64_t bytes, std::uint64_t buffer) {
    return asked.add(reinterpret_cast<const void*>(buffer << 32), bytes, now_ns);
  }
  std::uint64_t add(std::uint64_t bytes) { return add(bytes, ++last); }
  /// A message alone on its way, which takes so many nanoseconds for a KiB; returns its stores.
  Store message(std::uint64_t bytes, std::uint64_t cached, std::uint64_t past) {
    const std::uint64_t added = add(bytes);
    const Store stores = asked.stores(bytes);
    asked.remove(bytes, added);
    now_ns += (stores == Store::cached ? cached : past) * (bytes / 1024);
    return stores;
  }
  /// How many of so many messages go past the cache.
  int past_of(int messages, std::uint64_t bytes, std::uint64_t cached, std::uint64_t past) {
    int gone_past = 0;
    for (int i = 0; i < messages; ++i) gone_past += message(bytes, cached, past) == Store::streaming;
    return gone_past;
  }
};

TEST(AskedFor, goes_past_the_cache_with_what_surely_does_not_fit_and_never_with_little) {
  Asker asker;
  EXPECT_EQ(asker.message(16 * mib, 40, 40), Store::streaming);
  EXPECT_EQ(asker.past_of(200, 32 * mib, 40, 400), 200);
  EXPECT_EQ(asker.past_of(200, 4 * mib - 1, 400, 40), 0);
  asker.asked = AskedFor(2 * mib);
  EXPECT_EQ(asker.past_of(200, mib - 1, 400, 40), 0) << "less than a MiB is never measured";
}

TEST(AskedFor, takes_what_costs_less_in_between) {
  for (const std::uint64_t bytes : {4 * mib, 8 * mib, 16 * mib}) {
    EXPECT_GE(Asker().past_of(1000, bytes, 40, 30), 900) << bytes;
    EXPECT_LE(Asker().past_of(1000, bytes, 40, 60), 100) << bytes;
  }
}

TEST(AskedFor, ignores_turns_of_which_little_was_copied_by_the_stores_in_question) {
  // Data with gaps is not copied by them: only the first bytes of each message are.
  Asker asker;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t added = asker.add(8 * mib);
    EXPECT_EQ(asker.asked.stores(mib), Store::cached) << i;
    asker.asked.remove(8 * mib, added);
    asker.now_ns += 300'000;
  }
}

TEST(AskedFor, counts_what_is_on_its_way_together) {
  Asker asker;
  AskedFor& asked = asker.asked;
  for (int i = 0; i < 15; ++i) asker.add(mib);
  EXPECT_EQ(asked.stores(mib), Store::cached);
  asker.add(mib);
  EXPECT_EQ(asked.stores(mib), Store::streaming);
  for (int i = 0; i < 15; ++i) asked.remove(mib, mib);
  EXPECT_EQ(asked.stores(mib), Store::streaming) << "the last message of the window";
  asked.remove(mib, mib);
  EXPECT_EQ(asked.most(), 0u);
  asker.add(mib);
  EXPECT_EQ(asked.stores(mib), Store::cached) << "another window has begun";
}

TEST(AskedFor, counts_a_buffer_once_that_a_whole_window_is_for) {
  Asker asker;
  AskedFor& asked = asker.asked;
  EXPECT_EQ(asker.add(mib, 1), mib);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(asker.add(mib, 1), 0u);
  EXPECT_EQ(asked.stores(mib), Store::cached);
  EXPECT_EQ(asker.add(3 * mib, 1), 2 * mib) << "a longer one adds the rest";
  EXPECT_EQ(asked.stores(mib), Store::cached);
  // So do two buffers in turns.
  EXPECT_EQ(asker.add(20 * mib, 2), 20 * mib);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(asker.add(mib, i % 2 + 1u), 0u);
  EXPECT_EQ(asked.stores(mib), Store::streaming);
}

TEST(AskedFor, counts_a_buffer_again_when_nothing_was_on_its_way) {
  Asker asker;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(asker.add(64 * mib, 1), 64 * mib);
    EXPECT_EQ(asker.asked.stores(mib), Store::streaming) << "the buffer alone sweeps the cache";
    asker.asked.remove(64 * mib, 64 * mib);
  }
}

TEST(AskedFor, cuts_an_endless_stream_into_turns) {
  Asker asker;
  asker.add(4 * mib);
  int past = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t added = asker.add(4 * mib);
    const bool goes_past = asker.asked.stores(4 * mib) == Store::streaming;
    asker.asked.remove(4 * mib, added);
    asker.now_ns += (goes_past ? 30 : 40) * 4096;
    past += goes_past;
  }
  EXPECT_GE(past, 3000) << "otherwise the stores would never be tried";
}

} // namespace
