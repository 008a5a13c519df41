// The profile's file, and the initial estimates that ranks take from it.
#include "profile/profile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>

using namespace near;
using profile::Kind;
using profile::Profile;
using profile::Source;
using segment::Distance;
using segment::Protocol;

namespace {

constexpr auto l3 = static_cast<std::size_t>(Distance::l3), far = static_cast<std::size_t>(Distance::machine);
constexpr std::size_t direct = 0, pipelined = 1, cma = 2;

Profile example() {
  Profile made;
  made.machine = "host-0123456789abcdef";
  made.measured = "2026-11-21T15:20:01Z";
  for (std::size_t source = 0; source < profile::sources; ++source) {
    made.cost[l3][0][source] = {300000, 250000, 260000, 0};
    made.cost[l3][8][source] = {23000, 33000, 44000, 80000};
    made.cost[far][8][source] = {50000, 700000, 60000, 90000};
  }
  made.store_cost[l3] = {27000, 33000};
  made.short_time[l3] = {90000, 96000, 140000, 200000, 300000, 900000};
  made.store_cost[far] = {650000, 39000};
  return made;
}

std::string failure(std::string_view text) {
  Profile read;
  EXPECT_FALSE(profile::parse(text, read).ok()) << text;
  EXPECT_TRUE(read.machine.empty()) << "set although it failed";
  return std::string(base::failure_text());
}

/// A private cache folder.
class ProfileFile : public ::testing::Test {
protected:
  ProfileFile() {
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    EXPECT_TRUE(profile::path_of(example().machine, path_).ok());
  }
  ~ProfileFile() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& text) const {
    ASSERT_TRUE(profile::prepare(path_).ok()) << base::failure_text();
    std::ofstream(path_) << text;
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("profile-" + std::to_string(getpid()));
  std::string path_;
};

TEST(Profile, is_read_as_it_was_written) {
  auto text = text_of(example());
  Profile read;
  ASSERT_TRUE(profile::parse(text, read).ok()) << base::failure_text();
  EXPECT_EQ(read.cost, example().cost);
  EXPECT_EQ(read.store_cost, example().store_cost);
  EXPECT_EQ(read.short_time, example().short_time);
  EXPECT_EQ(text_of(read), text);
}

TEST(Profile, says_why_the_kernel_does_not_copy) {
  auto with_reason = example();
  with_reason.no_cma = "process_vm_readv: Operation not permitted";
  Profile read;
  ASSERT_TRUE(profile::parse(text_of(with_reason), read).ok());
  EXPECT_EQ(read.no_cma, with_reason.no_cma);
}

TEST(Profile, is_refused_wherever_it_is_cut_off) {
  auto text = text_of(example());
  for (std::size_t length = 0; length + 1 < text.size(); ++length) failure(text.substr(0, length));
}

TEST(Profile, is_refused_with_the_line_that_is_damaged) {
  const char* head = "near-profile 1\nmachine a\nmeasured b\n";
  for (const char* line : {"cost l3 4096 rewritten 1 2 3",
                           "cost l3 4096 rewritten 1 2 3 4 5",
                           "cost l3 4096 rewritten 1 2 3 x",
                           "cost l3 4096 rewritten 1 2 3 0",
                           "cost l3 4096 rewritten 1 2 3 4294967296",
                           "cost l3 4096 rewritten 1 2 3 -4",
                           "cost l3 4095 rewritten 1 2 3 4",
                           "cost l3 2048 rewritten 1 2 3 4",
                           "cost l3 268435456 rewritten 1 2 3 4",
                           "cost l4 4096 rewritten 1 2 3 4",
                           "cost l3 4096 written 1 2 3 4",
                           "cost",
                           "short l3 1 2 3 4 5",
                           "short l3 1 2 3 4 5 6 7",
                           "short l4 1 2 3 4 5 6",
                           "stores l3 1",
                           "stores l3 1 2 3",
                           "machine",
                           "other 1",
                           ""})
    EXPECT_EQ(failure(std::string(head) + line + "\nend\n"), "line 4 is damaged") << line;
  EXPECT_NE(failure("near-profile 4\nend\n").find("version 4"), std::string::npos);
  EXPECT_EQ(failure("{}"), "it is not a profile");
  EXPECT_EQ(failure(std::string(head) + "end\nend\n"), "line 5 is damaged");
  EXPECT_NE(failure("near-profile 1\nend\n").find("which machine"), std::string::npos);
}

TEST(Profile, survives_whatever_its_file_holds) {
  std::mt19937 random(17);
  auto below = [&](std::size_t count) { return random() % count; };
  const std::string whole = text_of(example());
  for (int round = 0; round < 20000; ++round) {
    auto text = whole;
    for (std::size_t changes = 1 + below(4); changes > 0; --changes)
      switch (auto at = below(text.size()); below(3)) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text.erase(at, below(20)); break;
      default: text.insert(at, text.substr(below(text.size()), below(20))); break;
      }
    Profile read, again;
    if (!profile::parse(text, read).ok()) continue;
    ASSERT_TRUE(profile::parse(text_of(read), again).ok()) << text << base::failure_text();
    ASSERT_EQ(read.cost, again.cost);
    (void)profile::estimates_of(read);
  }
}

TEST_F(ProfileFile, is_found_where_it_was_saved_and_nothing_else_stays) {
  Profile read;
  bool found = true;
  ASSERT_TRUE(profile::load(example().machine, read, found).ok());
  EXPECT_FALSE(found);
  ASSERT_TRUE(profile::prepare(path_).ok()) << base::failure_text();
  for (int time = 0; time < 2; ++time)
    ASSERT_TRUE(profile::save(example(), path_).ok()) << base::failure_text();
  ASSERT_TRUE(profile::load(example().machine, read, found).ok()) << base::failure_text();
  EXPECT_TRUE(found);
  EXPECT_EQ(text_of(read), text_of(example()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "near"), {}), 1);
}

TEST_F(ProfileFile, is_not_used_when_it_is_of_another_machine_empty_or_huge) {
  auto foreign = example();
  foreign.machine = "another-0123456789abcdef";
  for (const auto& text : {text_of(foreign), std::string(), std::string(1 << 20, 'x')}) {
    write(text);
    Profile read;
    bool found = true;
    EXPECT_FALSE(profile::load(example().machine, read, found).ok());
    EXPECT_FALSE(found);
    EXPECT_NE(base::failure_text().find("`near calibrate`"), std::string_view::npos) << base::failure_text();
  }
}

TEST_F(ProfileFile, needs_a_folder_named_by_an_absolute_path) {
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/somewhere", 1);
  std::string path;
  ASSERT_TRUE(profile::path_of("m", path).ok());
  EXPECT_EQ(path, "/somewhere/.cache/near/m.profile");
  unsetenv("HOME");
  EXPECT_FALSE(profile::path_of("m", path).ok());
}

TEST(InitialEstimates, of_what_was_not_measured_are_those_of_the_nearest_size_and_distance) {
  auto estimates = estimates_of(example());
  EXPECT_EQ(estimates.basis, segment::Basis::profile);
  EXPECT_STREQ(estimates.measured, "2026-11-21T15:20:01Z");
  EXPECT_EQ(estimates.pair[l3].cost[1][direct], 300000u);
  EXPECT_EQ(estimates.pair[l3].cost[15][direct], 23000u);
  EXPECT_EQ(estimates.pair[l3].cost[0][cma], 80000u) << "not measured at 4 KiB";
  for (std::size_t size = 0; size < segment::size_classes; ++size) {
    EXPECT_EQ(estimates.pair[0].cost[size], estimates.pair[l3].cost[size]) << "core, like l3";
    EXPECT_EQ(estimates.pair[3].cost[size], estimates.pair[far].cost[size]) << "package, like machine";
  }
}

TEST(InitialEstimates, of_the_ring_are_those_of_the_stores_that_its_sender_will_choose) {
  auto estimates = estimates_of(example());
  EXPECT_EQ(estimates.pair[l3].cost[8][pipelined], 33000u);
  EXPECT_EQ(estimates.pair[far].cost[8][pipelined], 60000u);
}

TEST(InitialEstimates, are_built_in_for_every_distance_size_and_way) {
  auto estimates = segment::built_in_estimates();
  EXPECT_EQ(estimates.basis, segment::Basis::built_in);
  for (const auto& pair : estimates.pair)
    for (const auto& row : pair.cost)
      for (auto cost : row) EXPECT_GT(cost, 0u);
}

TEST(Places, are_as_far_apart_as_the_smallest_part_that_holds_both) {
  topo::Machine machine;
  ASSERT_TRUE(topo::recorded_machine("package:2 numa:2 l3:2 core:4 pu:2", machine).ok());
  auto place = [&](unsigned first, unsigned last) {
    topo::CpuSet cpus;
    cpus.add_range(first, last);
    return profile::location_of(machine, cpus);
  };
  auto from_first = [&](unsigned cpu) { return distance_between(place(0, 0), place(cpu, cpu)); };
  EXPECT_EQ(from_first(1), Distance::core);
  EXPECT_EQ(from_first(2), Distance::l3);
  EXPECT_EQ(from_first(8), Distance::numa);
  EXPECT_EQ(from_first(16), Distance::package);
  EXPECT_EQ(from_first(32), Distance::machine);
  EXPECT_EQ(distance_between(place(0, 7), place(0, 7)), Distance::l3) << "bound to the same cache";
  EXPECT_EQ(distance_between(segment::Location{}, segment::Location{}), Distance::machine) << "not bound";
}

TEST(Machines, have_names_of_their_own) {
  topo::Machine one, other;
  ASSERT_TRUE(topo::recorded_machine("package:1 numa:1 l3:1 core:2 pu:1", one).ok());
  ASSERT_TRUE(topo::recorded_machine("package:1 numa:1 l3:2 core:1 pu:1", other).ok());
  EXPECT_NE(profile::machine_name(one), profile::machine_name(other));
  auto before = profile::machine_name(one);
  EXPECT_EQ(before, profile::machine_name(one));
  one.processor = "another model";
  EXPECT_NE(before, profile::machine_name(one));
}

} // namespace
