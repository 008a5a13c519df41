#include "boot/machine_list.h"

#include <gtest/gtest.h>

namespace near::boot {
namespace {

using Ranks = std::vector<std::vector<std::uint32_t>>;
using Machines = std::vector<std::uint32_t>;

Machines machines_from(const std::vector<std::string>& rows, std::uint32_t size) {
  MachineListReader reader;
  for (std::size_t row = 0; row < rows.size(); ++row) EXPECT_EQ(reader.add(rows[row]), row + 1 < rows.size());
  Machines machine_of;
  EXPECT_TRUE(reader.finish(size, machine_of).ok()) << base::failure_text();
  return machine_of;
}

TEST(MachineList, is_short_for_blocks_and_turns) {
  EXPECT_EQ(machine_list_rows({{0, 1, 2, 3}, {4, 5, 6, 7}}), (std::vector<std::string>{"0-3;4-7"}));
  EXPECT_EQ(machine_list_rows({{0, 2, 4, 6}, {1, 3, 5, 7}}), (std::vector<std::string>{"0-6:2;1-7:2"}));
}

TEST(MachineList, is_read_as_it_was_written_however_it_is_cut) {
  const Ranks ranks = {{0, 5, 6}, {1}, {2, 3, 4, 8}, {7}};
  for (std::size_t longest : {1, 2, 3, 5, 100})
    EXPECT_EQ(machines_from(machine_list_rows(ranks, longest), 9), (Machines{0, 1, 2, 2, 2, 0, 0, 3, 2}))
        << longest;
}

TEST(MachineList, must_name_the_machine_of_each_rank) {
  for (const char* text : {"", "0-2", "0-3;9", "0-3;x", "0,1;;2,3", "3-0"}) {
    MachineListReader reader;
    reader.add(text);
    Machines machine_of;
    EXPECT_FALSE(reader.finish(4, machine_of).ok()) << text;
  }
}

} // namespace
} // namespace near::boot
