#include "calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <unistd.h>

using namespace near;
using segment::Distance;

namespace {

TEST(Calibrate, takes_one_pair_for_each_distance_among_the_allowed_processors) {
  topo::Machine machine;
  ASSERT_TRUE(topo::recorded_machine("package:2 numa:2 l3:2 core:4 pu:2", machine).ok());
  auto distances = [&](const std::vector<unsigned>& allowed) {
    topo::CpuSet cpus;
    for (unsigned cpu : allowed) cpus.add(cpu);
    std::vector<Distance> found;
    for (const auto& pair : calibrate::pairs_of(machine, cpus)) {
      EXPECT_TRUE(cpus.has(pair.sender) && cpus.has(pair.receiver) && pair.sender != pair.receiver);
      found.push_back(pair.distance);
    }
    return found;
  };
  std::vector<unsigned> all(64);
  for (unsigned cpu = 0; cpu < 64; ++cpu) all[cpu] = cpu;
  EXPECT_EQ(distances(all), (std::vector{Distance::core, Distance::l3, Distance::numa, Distance::package,
                                         Distance::machine}));
  EXPECT_EQ(distances({0, 2, 3}), (std::vector{Distance::core, Distance::l3}));
  EXPECT_EQ(distances({0, 40}), std::vector{Distance::machine});
  EXPECT_TRUE(distances({5}).empty());
}

TEST(Calibrate, measures_every_kind_between_two_real_processes) {
  alarm(60);
  topo::Machine machine;
  topo::CpuSet allowed;
  ASSERT_TRUE(topo::read_machine(machine).ok() && os::affinity_of(0, allowed).ok());
  auto pairs = calibrate::pairs_of(machine, allowed);
  if (pairs.empty()) GTEST_SKIP() << "one processor only";
  profile::Profile profile;
  const auto& smallest = profile.cost[static_cast<std::size_t>(pairs[0].distance)][0][1];
  // On a busy machine a second may be too short for every kind.
  for (std::uint64_t seconds : {1, 5, 20}) {
    profile = {};
    unsigned last = 0;
    auto report = [&](unsigned done, unsigned total, const calibrate::Pair&, profile::Kind) {
      EXPECT_GE(done, last);
      EXPECT_LE(done, total);
      last = done;
    };
    ASSERT_TRUE(calibrate::measure(machine, allowed, seconds * 1'000'000'000, report, profile).ok())
        << base::failure_text();
    if (std::count(smallest.begin(), smallest.end(), 0u) <= (profile.no_cma.empty() ? 0 : 1)) break;
  }
  for (auto kind :
       {profile::Kind::direct, profile::Kind::pipelined_cached, profile::Kind::pipelined_streaming})
    EXPECT_GT(smallest[static_cast<std::size_t>(kind)], 0u) << calibrate::kind_name(kind);
  EXPECT_EQ(smallest[static_cast<std::size_t>(profile::Kind::cma)] == 0, !profile.no_cma.empty());
  for (auto cost : profile.store_cost[static_cast<std::size_t>(pairs[0].distance)]) EXPECT_GT(cost, 0u);
  alarm(0);
}

TEST(Calibrate, says_that_one_processor_is_not_enough) {
  topo::Machine machine;
  ASSERT_TRUE(topo::recorded_machine("package:1 numa:1 l3:1 core:1 pu:1", machine).ok());
  profile::Profile profile;
  EXPECT_FALSE(calibrate::measure(machine, machine.cpus(), 1, {}, profile).ok());
  EXPECT_NE(base::failure_text().find("two processors"), std::string_view::npos);
}

} // namespace
