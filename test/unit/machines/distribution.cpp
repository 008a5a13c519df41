// Which machine each rank runs on.
#include "machines/distribution.h"

#include <gtest/gtest.h>

#include <string>

namespace near::machines {
namespace {

std::string spread(const std::vector<Slots>& machines, const std::vector<Share>& programs) {
  std::vector<unsigned> machine_of;
  if (!distribute(machines, programs, machine_of).ok()) return "refused";
  std::string text;
  for (const unsigned machine : machine_of) text += std::to_string(machine);
  return text;
}

TEST(Distribution, chosen_slots_are_filled_in_turn) {
  const std::vector<Slots> machines = {{2, true}, {3, true}};
  EXPECT_EQ(spread(machines, {{.ranks = 5}}), "00111");
  EXPECT_EQ(spread(machines, {{.ranks = 2}}), "00");
  EXPECT_EQ(spread(machines, {{.ranks = 8}}), "00111001") << "and again from the first machine";
}

TEST(Distribution, without_numbers_each_machine_takes_its_part) {
  EXPECT_EQ(spread({{4, false}, {4, false}}, {{.ranks = 4}}), "0011");
  EXPECT_EQ(spread({{2, false}, {6, false}}, {{.ranks = 4}}), "0111");
  EXPECT_EQ(spread({{2, false}, {2, false}, {2, false}}, {{.ranks = 4}}), "0112");
  EXPECT_EQ(spread({{64, false}, {64, true}}, {{.ranks = 2}}), "01");
  EXPECT_EQ(spread({{4, false}, {4, false}}, {{.ranks = 1}}).size(), 1u);
}

TEST(Distribution, every_rank_has_a_machine) {
  for (unsigned ranks = 1; ranks < 70; ++ranks)
    for (unsigned machines = 1; machines < 12; ++machines) {
      std::vector<Slots> slots;
      for (unsigned at = 0; at < machines; ++at) slots.push_back({1 + at * at % 7, false});
      std::vector<unsigned> machine_of;
      const std::vector<Share> shares = {{.ranks = ranks}};
      ASSERT_TRUE(distribute(slots, shares, machine_of).ok());
      ASSERT_EQ(machine_of.size(), ranks) << machines;
      for (std::size_t at = 1; at < machine_of.size(); ++at) ASSERT_GE(machine_of[at], machine_of[at - 1]);
    }
}

TEST(Distribution, a_number_for_each_machine_takes_turns) {
  const std::vector<Slots> machines = {{8, true}, {8, false}};
  EXPECT_EQ(spread(machines, {{.ranks = 5, .on = {}, .each = 1}}), "01010");
  EXPECT_EQ(spread(machines, {{.ranks = 5, .on = {}, .each = 2}}), "00110");
  EXPECT_EQ(spread(machines, {{.ranks = 4, .on = {}, .each = 2, .each_is_limit = true}}), "0011");
  EXPECT_EQ(spread(machines, {{.ranks = 5, .on = {}, .each = 2, .each_is_limit = true}}), "refused");
}

TEST(Distribution, programs_follow_one_another_or_have_machines_of_their_own) {
  const std::vector<Slots> machines = {{2, true}, {2, true}};
  EXPECT_EQ(spread(machines, {{.ranks = 1}, {.ranks = 3}}), "0011") << "as if they were one program";
  EXPECT_EQ(spread(machines, {{.ranks = 2, .on = {1}}, {.ranks = 2, .on = {0}}}), "1100");
}

} // namespace
} // namespace near::machines
