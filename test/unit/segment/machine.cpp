// The description of the machine in the segment: written by the launcher, and validated by its readers.
#include "segment/machine.h"

#include "os/memory.h"

#include <gtest/gtest.h>

namespace near::segment {
namespace {

struct Job {
  Job() { made = segment.create(4, 4, 4).ok(); }
  Segment segment;
  bool made = false;
};

TEST(Machine, what_is_written_is_found) {
  Job job;
  ASSERT_TRUE(job.made);
  Machine told, found;
  EXPECT_FALSE(find_machine(job.segment, found)) << "nobody has told of one";
  ASSERT_TRUE(make_machine(job.segment, 3, 2, told).ok());
  ASSERT_EQ(told.processors.size(), 3u);
  ASSERT_EQ(told.nodes.size(), 2u);
  ASSERT_EQ(told.distances.size(), 4u);
  for (std::uint16_t i = 0; i < 3; ++i)
    told.processors[i] = {static_cast<std::uint16_t>(10 + i), i, i, 0, 1, 0};
  told.nodes[1] = {1ull << 40, 7, static_cast<std::uint32_t>(Tier::hbm)};
  told.distances[2] = 21;
  ASSERT_TRUE(find_machine(job.segment, found));
  EXPECT_EQ(found.processors[2].number, 12);
  EXPECT_EQ(found.nodes[1].number, 7);
  EXPECT_EQ(found.nodes[1].bytes, 1ull << 40);
  EXPECT_EQ(found.distances[2], 21);
  EXPECT_TRUE(found.devices.empty());

  MachineDevice device{};
  device.name[0] = 'x';
  device.near.numa = 1;
  device.nic = 1;
  const MachineDevice devices[] = {device, device};
  add_devices(job.segment, 3, 2, devices);
  ASSERT_TRUE(find_machine(job.segment, found));
  ASSERT_EQ(found.devices.size(), 2u);
  EXPECT_STREQ(found.devices[1].name, "x");
  EXPECT_EQ(found.devices[1].near.numa, 1);
  EXPECT_EQ(found.nodes[1].number, 7) << "the tables do not overlap";
}

TEST(Machine, of_too_many_nics_the_first_are_listed) {
  Job job;
  ASSERT_TRUE(job.made);
  Machine machine;
  ASSERT_TRUE(make_machine(job.segment, 1, 1, machine).ok());
  std::vector<MachineDevice> devices(most_devices + 5);
  add_devices(job.segment, 1, 1, devices);
  ASSERT_TRUE(find_machine(job.segment, machine));
  EXPECT_EQ(machine.devices.size(), most_devices);
}

TEST(Machine, one_that_does_not_fit_is_refused) {
  Job job;
  ASSERT_TRUE(job.made);
  Machine machine;
  EXPECT_FALSE(make_machine(job.segment, 1u << 20, 1, machine).ok());
  EXPECT_FALSE(make_machine(job.segment, 1, 1u << 20, machine).ok());
  EXPECT_FALSE(find_machine(job.segment, machine));
}

TEST(Machine, a_damaged_header_is_not_trusted) {
  Job job;
  ASSERT_TRUE(job.made);
  Machine machine;
  ASSERT_TRUE(make_machine(job.segment, 2, 2, machine).ok());
  auto& header = job.segment.header();
  const Offset right = header.machine;
  auto& head = *job.segment.at<MachineHead>(right);
  for (Offset wrong : {Offset{8}, right + 1, header.stride - 8, ~Offset{0}}) {
    header.machine = wrong;
    EXPECT_FALSE(find_machine(job.segment, machine)) << wrong;
  }
  header.machine = right;
  head.node_count = 0xffffffff;
  EXPECT_FALSE(find_machine(job.segment, machine));
  head.node_count = 2;
  head.processor_count = 0xffffffff;
  EXPECT_FALSE(find_machine(job.segment, machine));
  head.processor_count = 2;
  head.device_count.store_relaxed(0xffffffff);
  ASSERT_TRUE(find_machine(job.segment, machine));
  EXPECT_EQ(machine.devices.size(), most_devices);
}

} // namespace
} // namespace near::segment
