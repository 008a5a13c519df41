// Agents in a tree: who reaches whom, and the frames for machines behind others.
#include "machines/tree.h"

#include <gtest/gtest.h>

#include <map>

namespace near::machines {
namespace {

TEST(Tree, mpiexec_reaches_all_machines_without_a_fan_out_and_few_in_any_case) {
  for (unsigned machine = 0; machine < 100; ++machine) EXPECT_FALSE(reached_from(machine, 0));
  for (unsigned machine = 0; machine < 32; ++machine) EXPECT_FALSE(reached_from(machine, 32)) << machine;
  EXPECT_EQ(reached_from(32, 32), 0u);
}

TEST(Tree, nobody_reaches_more_than_the_fan_out_and_all_begin_at_mpiexec) {
  for (unsigned fan_out : {1u, 2u, 3u, 32u}) {
    std::map<unsigned, unsigned> reached;
    unsigned by_mpiexec = 0;
    for (unsigned machine = 0; machine < 500; ++machine) {
      const auto from = reached_from(machine, fan_out);
      if (from) {
        EXPECT_LT(*from, machine);
        EXPECT_LE(++reached[*from], fan_out);
      } else {
        EXPECT_LE(++by_mpiexec, fan_out);
      }
    }
  }
}

TEST(Tree, a_fan_out_of_one_is_a_chain) {
  EXPECT_FALSE(reached_from(0, 1));
  for (unsigned machine = 1; machine < 10; ++machine) EXPECT_EQ(reached_from(machine, 1), machine - 1);
}

TEST(Tree, bodies_are_read_as_they_were_written) {
  Reach reach;
  ASSERT_TRUE(Reach::read(Reach{7, {"ssh", "m7", "exec 'x'"}, "/home", 5}.body(), reach));
  EXPECT_EQ(reach.machine, 7u);
  EXPECT_EQ(reach.words, (std::vector<std::string>{"ssh", "m7", "exec 'x'"}));
  EXPECT_EQ(reach.directory, "/home");
  EXPECT_EQ(reach.lost_after, 5u);
  Parted parted;
  ASSERT_TRUE(Parted::read(Parted{8, "ssh ended"}.body(), parted));
  EXPECT_EQ(parted.machine, 8u);
  EXPECT_EQ(parted.why, "ssh ended");
  unsigned machine = 0;
  ASSERT_TRUE(read_machine(BodyWriter().number(9).body(), machine));
  EXPECT_EQ(machine, 9u);
}

TEST(Tree, frames_are_relayed_through_several_machines) {
  const std::string inner = frame(Kind::output, "hello\n");
  const std::string outer = Relayed::body(2, frame(Kind::relayed, Relayed::body(6, inner)));
  Relayed first, second;
  ASSERT_TRUE(Relayed::read(outer, first));
  EXPECT_EQ(first.machine, 2u);
  ASSERT_EQ(first.frame.kind, Kind::relayed);
  ASSERT_TRUE(Relayed::read(first.frame.body, second));
  EXPECT_EQ(second.machine, 6u);
  EXPECT_EQ(second.frame.kind, Kind::output);
  EXPECT_EQ(second.frame.body, "hello\n");
}

TEST(Tree, damage_is_noticed_and_leaves_the_result_alone) {
  const std::string whole = Relayed::body(2, frame(Kind::output, "hello\n"));
  Relayed relayed;
  relayed.machine = 77;
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(Relayed::read(std::string_view(whole).substr(0, size), relayed)) << size;
  EXPECT_FALSE(Relayed::read(whole + "x", relayed)) << "more than a frame";
  EXPECT_FALSE(Relayed::read(whole + frame(Kind::alive), relayed)) << "two frames";
  EXPECT_FALSE(Relayed::read(BodyWriter().number(2).body() + std::string("\1\0\0\0\0", 5), relayed));
  EXPECT_FALSE(Relayed::read(BodyWriter().number(1ull << 32).body() + frame(Kind::alive), relayed));
  EXPECT_EQ(relayed.machine, 77u);

  Reach reach;
  const std::string request = Reach{7, {"ssh", "m7"}, "/home", 5}.body();
  for (std::size_t size = 0; size < request.size(); ++size)
    EXPECT_FALSE(Reach::read(std::string_view(request).substr(0, size), reach)) << size;
  EXPECT_FALSE(Reach::read(request + "x", reach));
  EXPECT_FALSE(Reach::read(Reach{7, {}, "/home", 5}.body(), reach)) << "no program";
  EXPECT_FALSE(Reach::read(Reach{7, {""}, "/home", 5}.body(), reach)) << "no program";

  Parted parted;
  EXPECT_FALSE(Parted::read("", parted));
  EXPECT_FALSE(Parted::read(Parted{1, "why"}.body() + "x", parted));
  unsigned machine = 0;
  EXPECT_FALSE(read_machine("1234567", machine));
  EXPECT_FALSE(read_machine(BodyWriter().number(1).number(2).body(), machine));
}

} // namespace
} // namespace near::machines
