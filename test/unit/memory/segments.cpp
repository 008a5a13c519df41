// Several segments at once: their numbers, and addresses in them.
#include "memory/segments.h"

#include <gtest/gtest.h>

namespace {

using namespace near;
using memory::GlobalAddress;

/// Two jobs of one rank each, as if from two launchers; memory::space() belongs to the first.
class Segments : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(memory::space().segment.create(1, 1, 1).ok()) << base::failure_text();
    ASSERT_TRUE(other.create(1, 1, 1).ok()) << base::failure_text();
  }
  void TearDown() override {
    memory::unmap_segment(1);
    memory::unmap_segment(2);
    memory::space().segment.unmap();
  }
  segment::Segment other;
};

TEST_F(Segments, a_second_segment_is_the_same_memory_at_another_address) {
  std::uint32_t number = 0;
  ASSERT_TRUE(memory::map_segment(other.descriptor(), number).ok()) << base::failure_text();
  EXPECT_EQ(number, 1u);
  const GlobalAddress address{number, other.region(0)};
  std::byte* here = memory::local_address(address);
  ASSERT_NE(here, nullptr);
  EXPECT_NE(here, other.at<std::byte>(other.region(0)));
  *other.at<std::byte>(other.region(0)) = std::byte{42};
  EXPECT_EQ(*here, std::byte{42});
  GlobalAddress found;
  ASSERT_TRUE(memory::find_global(here, found));
  EXPECT_EQ(found, address);
}

TEST_F(Segments, the_job_s_own_segment_has_number_0) {
  GlobalAddress found{7, 7};
  const segment::Segment& own = memory::space().segment;
  ASSERT_TRUE(memory::find_global(own.at<std::byte>(own.region(0)), found));
  EXPECT_EQ(found, (GlobalAddress{0, own.region(0)}));
  EXPECT_EQ(memory::local_address(found), own.at<std::byte>(own.region(0)));
  memory::unmap_segment(0);
  EXPECT_NE(memory::find_segment(0), nullptr) << "only further segments can be unmapped";
}

TEST_F(Segments, private_memory_and_addresses_outside_are_not_found) {
  int local = 0;
  GlobalAddress found;
  EXPECT_FALSE(memory::find_global(&local, found));
  EXPECT_EQ(memory::local_address({0, memory::space().segment.bytes()}), nullptr);
  EXPECT_EQ(memory::local_address({1, 0}), nullptr) << "no segment has this number";
}

TEST_F(Segments, a_number_is_used_again_after_its_segment_was_unmapped) {
  std::uint32_t first = 0, second = 0, third = 0;
  ASSERT_TRUE(memory::map_segment(other.descriptor(), first).ok());
  ASSERT_TRUE(memory::map_segment(other.descriptor(), second).ok());
  EXPECT_EQ(second, 2u);
  memory::unmap_segment(first);
  EXPECT_EQ(memory::local_address({first, other.region(0)}), nullptr);
  EXPECT_NE(memory::local_address({second, other.region(0)}), nullptr);
  ASSERT_TRUE(memory::map_segment(other.descriptor(), third).ok());
  EXPECT_EQ(third, first);
}

TEST_F(Segments, what_is_not_a_segment_is_refused) {
  std::uint32_t number = 9;
  EXPECT_FALSE(memory::map_segment(0, number).ok());
  EXPECT_EQ(number, 9u);
  EXPECT_EQ(memory::find_segment(1), nullptr);
}

} // namespace
