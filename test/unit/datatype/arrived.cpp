// What measurements of lines say of their distance, and that bytes which have arrived are unpacked wherever they come from.
#include "datatype/arrived.h"

#include "datatype/datatype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace near::datatype {
namespace {

TEST(LineDistance, is_near_before_anything_was_measured) { EXPECT_FALSE(LineDistance().is_far()); }

TEST(LineDistance, follows_several_measurements_but_not_one) {
  LineDistance distance;
  for (int i = 0; i < 10; ++i) distance.note(40);
  distance.note(5000); // an interrupt
  EXPECT_FALSE(distance.is_far());
  for (int i = 0; i < 10; ++i) distance.note(200);
  EXPECT_TRUE(distance.is_far());
  distance.note(60);
  EXPECT_TRUE(distance.is_far());
  for (int i = 0; i < 10; ++i) distance.note(60);
  EXPECT_FALSE(distance.is_far());
}

TEST(LineDistance, is_measured_at_once_and_then_seldom) {
  LineDistance distance;
  EXPECT_TRUE(distance.is_due());
  int due = 0;
  for (int i = 0; i < 3100; ++i) due += distance.is_due() ? 1 : 0;
  EXPECT_EQ(due, 100);
}

/// The sanitizers would notice a load beyond the end.
TEST(LoadLines, stays_within_the_bytes) {
  for (const std::size_t bytes : {1u, 63u, 64u, 65u, 4096u, 5000u}) {
    const std::vector<std::byte> data(bytes);
    load_lines(data.data(), bytes);
  }
}

TEST(UnpackArrived, moves_all_lengths) {
  ASSERT_TRUE(make_predefined_types().ok());
  Datatype& integer = *find_datatype(MPI_INT);
  for (const MPI_Count ints : {1, 100, 512, 513, 1000, 5000, 20000}) {
    Datatype* every_third = nullptr;
    ASSERT_TRUE(make_vector(ints, 1, 3, false, integer, every_third).ok());
    std::vector<int> packed(static_cast<std::size_t>(ints)), strided(packed.size() * 3, -1);
    for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<int>(i);
    const Buffer buffer{strided.data(), 1, every_third};
    for (int again = 0; again < 40; ++again) { // some of these measure
      std::fill(strided.begin(), strided.end(), -1);
      unpack_arrived(buffer, 0, packed.data(), buffer.bytes());
      for (std::size_t i = 0; i < strided.size(); ++i)
        ASSERT_EQ(strided[i], i % 3 == 0 ? static_cast<int>(i / 3) : -1);
    }
    release(every_third);
  }
}

} // namespace
} // namespace near::datatype
