// Machines as hwloc describes them, and their slots.
#include "topo/slots.h"

#include <gtest/gtest.h>

using namespace near;

namespace {

topo::Machine machine_of(const std::string& description) {
  topo::Machine machine;
  EXPECT_TRUE(topo::recorded_machine(description, machine).ok()) << base::failure_text();
  return machine;
}

TEST(machine, a_machine_is_counted) {
  auto machine = machine_of("package:2 numa:2 l3:2 core:4 pu:2");
  EXPECT_EQ(machine.text(), "2 packages, 4 NUMA nodes, 8 L3 caches, 32 cores, 64 processors");
  EXPECT_EQ(machine.cores[5].l3, 1u);
  EXPECT_EQ(machine.cores[31].package, 1u);
  EXPECT_EQ(machine.cores[31].numa, 3u);
}

TEST(machine, a_machine_without_l3_groups_cores_by_node) {
  auto machine = machine_of("numa:2 core:2 pu:1");
  EXPECT_FALSE(machine.has_l3);
  EXPECT_EQ(machine.l3s, 2u);
  EXPECT_EQ(machine.text(), "1 package, 2 NUMA nodes, 4 cores, 4 processors");
}

TEST(machine, this_machine_can_be_read) {
  topo::Machine machine;
  ASSERT_TRUE(topo::read_machine(machine).ok()) << base::failure_text();
  EXPECT_GE(machine.cores.size(), 1u);
}

topo::CpuSet one_processor(unsigned number) {
  topo::CpuSet set;
  set.add(number);
  return set;
}

TEST(machine, the_nearest_memory_of_each_kind_is_found) {
  topo::Machine machine;
  for (unsigned index = 0; index < 2; ++index) {
    topo::Core core;
    core.cpus = one_processor(index);
    core.index = core.numa = index;
    machine.cores.push_back(core);
  }
  auto add = [&](unsigned number, topo::Tier tier, std::uint64_t bytes, const topo::CpuSet& near) {
    machine.nodes.push_back({.number = number, .tier = tier, .bytes = bytes, .near = near});
  };
  add(0, topo::Tier::dram, 64, one_processor(0));
  add(1, topo::Tier::dram, 64, one_processor(1));
  add(4, topo::Tier::hbm, 8, one_processor(1));  // the kernel's numbers may have gaps
  add(5, topo::Tier::slow, 100, machine.cpus()); // equally near to both
  add(6, topo::Tier::slow, 200, machine.cpus());
  auto nearest = [&](unsigned core, topo::Tier tier) {
    return topo::nearest_node(machine, one_processor(core), tier);
  };
  EXPECT_EQ(nearest(0, topo::Tier::dram), 0);
  EXPECT_EQ(nearest(1, topo::Tier::dram), 1);
  EXPECT_EQ(nearest(0, topo::Tier::hbm), 4) << "far is better than none";
  EXPECT_EQ(nearest(0, topo::Tier::slow), 6) << "of equally near ones the largest";
  EXPECT_EQ(nearest(0, topo::Tier::device), -1);
  machine.distances = {10, 20, 30, 40, 50, 20, 10, 15, 50, 40, 30, 15, 10,
                       60, 60, 40, 50, 60, 10, 70, 50, 40, 60, 70, 10};
  EXPECT_EQ(nearest(0, topo::Tier::slow), 5);
  EXPECT_EQ(nearest(1, topo::Tier::slow), 6);
  EXPECT_EQ(topo::nearest_node(machine, {}, topo::Tier::dram), 0) << "not bound: as the first core";
}

TEST(machine, an_invalid_description_is_refused) {
  topo::Machine machine;
  EXPECT_TRUE(topo::recorded_machine("nonsense", machine).is(base::Code::invalid));
}

TEST(slots, are_the_least_of_mask_cpuset_and_processor_time) {
  os::CpuSet mask;
  mask.add_range(0, 7);
  os::Limits limits;
  EXPECT_EQ(topo::count_slots(mask, limits).count, 8u);
  limits.cpuset.add_range(4, 15);
  EXPECT_EQ(topo::count_slots(mask, limits).count, 4u);
  limits.cpu.push_back({1.5, "/group"});
  auto slots = topo::count_slots(mask, limits);
  EXPECT_EQ(slots.count, 2u);
  EXPECT_EQ(slots.reason, "affinity mask 8, cpuset 12, cpu.max 1.5");
  limits.cpu.push_back({0.2, "/group/inner"});
  EXPECT_EQ(topo::count_slots(mask, limits).count, 1u);
}

} // namespace
