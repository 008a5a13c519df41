// Which reads look like a wait.
#include "rma/repeated_reads.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using near::rma::RepeatedReads;

/// For each read, whether it ends a repeated round.
std::vector<bool> answers(const std::vector<std::uintptr_t>& reads) {
  RepeatedReads repeated;
  std::vector<bool> all;
  all.reserve(reads.size());
  for (const std::uintptr_t read : reads) all.push_back(repeated.repeats(read));
  return all;
}

TEST(repeated_reads, one_word_is_a_wait_from_the_second_read_on) {
  EXPECT_EQ(answers({7, 7, 7, 7}), (std::vector<bool>{false, true, true, true}));
}

TEST(repeated_reads, a_change_is_progress) {
  EXPECT_EQ(answers({7, 7, 8, 8, 7, 7}), (std::vector<bool>{false, true, false, true, false, true}));
}

TEST(repeated_reads, several_words_in_turn_are_a_wait_from_the_second_round_on) {
  EXPECT_EQ(answers({1, 2, 3, 1, 2, 3, 1}),
            (std::vector<bool>{false, false, false, false, false, true, true}));
}

TEST(repeated_reads, a_word_that_is_read_between_others_is_work) {
  std::vector<std::uintptr_t> lookups;
  for (std::uintptr_t i = 0; i < 1000; ++i) {
    lookups.push_back(1); // the head of a table
    lookups.push_back(100 + i);
  }
  EXPECT_EQ(answers(lookups), std::vector<bool>(lookups.size(), false));
}

TEST(repeated_reads, a_counter_that_always_grows_is_work) {
  std::vector<std::uintptr_t> reads;
  for (std::uintptr_t i = 1; i <= 1000; ++i) reads.push_back(i);
  EXPECT_EQ(answers(reads), std::vector<bool>(reads.size(), false));
}

TEST(repeated_reads, rounds_of_any_length_are_found_up_to_the_longest) {
  for (unsigned length = 1; length <= RepeatedReads::longest + 1; ++length) {
    RepeatedReads repeated;
    bool found = false;
    for (unsigned i = 0; i < 3 * length; ++i) found = repeated.repeats(1 + i % length);
    EXPECT_EQ(found, length <= RepeatedReads::longest) << length;
  }
}

TEST(repeated_reads, a_wait_after_long_work_is_found_at_once) {
  RepeatedReads repeated;
  for (std::uintptr_t i = 1; i <= 100000; ++i) EXPECT_FALSE(repeated.repeats(i));
  EXPECT_FALSE(repeated.repeats(1));
  EXPECT_TRUE(repeated.repeats(1));
}

} // namespace
