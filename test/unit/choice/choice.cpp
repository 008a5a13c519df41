// The choice of algorithms: every collective has an algorithm, the choice depends on the facts of the call only, and the
// knob's words are checked.
#include "choice/choice.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace near::choice {
namespace {

TEST(choice, every_collective_has_an_algorithm_for_every_call) {
  ASSERT_TRUE(configure("auto").ok());
  for (int collective = 0; collective < collective_count; ++collective)
    for (int size : {1, 2, 3, 4, 7, 8, 16, 100, 1000})
      for (MPI_Count bytes : {0ll, 1ll, 1000ll, 100000ll, 10000000000ll})
        for (bool commutative : {false, true})
          for (bool in_place : {false, true}) {
            Facts facts{static_cast<Collective>(collective), bytes, size, commutative, in_place};
            const Algorithm& row = choose(facts);
            EXPECT_EQ(row.collective, facts.collective);
            EXPECT_TRUE(row.admits(facts));
            EXPECT_EQ(&choose(facts), &row);
          }
}

TEST(choice, names_are_unique_within_a_collective) {
  std::set<std::string> seen;
  for (const Algorithm& row : algorithms())
    EXPECT_TRUE(seen.insert(std::string(name_of(row.collective)) + "=" + row.name).second);
}

TEST(choice, the_knob_names_an_algorithm_where_its_limits_allow) {
  ASSERT_TRUE(configure("allreduce=ring,bcast=scatter_allgather").ok());
  EXPECT_STREQ(choose({Collective::allreduce, 8, 4, true, false}).name, "ring");
  EXPECT_STREQ(choose({Collective::allreduce, 8, 4, false, false}).name, "recursive_doubling");
  EXPECT_STREQ(choose({Collective::broadcast, 8, 2, true, false}).name, "scatter_allgather");
  ASSERT_TRUE(configure("auto").ok());
  EXPECT_STREQ(choose({Collective::allreduce, 8, 4, true, false}).name, "recursive_doubling");
}

TEST(choice, ranks_that_share_processors_meet_at_one_of_them) {
  Facts facts{.collective = Collective::barrier, .size = 8};
  EXPECT_STREQ(choose(facts).name, "dissemination");
  facts.shared_processors = true;
  EXPECT_STREQ(choose(facts).name, "linear");
  EXPECT_STREQ(
      choose({.collective = Collective::allreduce, .bytes = 8, .size = 8, .shared_processors = true}).name,
      "linear");
  facts.size = 1000;
  EXPECT_STREQ(choose(facts).name, "dissemination");
}

/// A recorded call takes memory for each step.
TEST(choice, long_calls_in_an_area_are_not_recorded) {
  Facts facts{
      .collective = Collective::alltoall, .bytes = 1 << 20, .size = 8, .recorded = true, .area = true};
  EXPECT_STREQ(choose(facts).name, "shared");
  facts.bytes = 4 << 20;
  EXPECT_STREQ(choose(facts).name, "pairwise");
  facts.recorded = false;
  EXPECT_STREQ(choose(facts).name, "shared");
}

TEST(choice, an_unknown_word_is_an_error_that_offers_the_nearest) {
  EXPECT_FALSE(configure("allreduce=rinng").ok());
  EXPECT_NE(base::failure_text().find("did you mean ring?"), std::string::npos) << base::failure_text();
  EXPECT_FALSE(configure("alreduce=ring").ok());
  EXPECT_NE(base::failure_text().find("did you mean allreduce?"), std::string::npos) << base::failure_text();
  EXPECT_FALSE(configure("ring").ok());
  EXPECT_STREQ(choose({Collective::allreduce, 8, 4, true, false}).name, "recursive_doubling");
}

} // namespace
} // namespace near::choice
