// Runs of memory: any list of pieces comes back as it was given, and checks of their range cannot be deceived.
#include "rma/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace near::rma {
namespace {

std::vector<std::byte> bytes_of(std::uint64_t address, std::uint64_t bytes) {
  const auto* at = reinterpret_cast<const std::byte*>(address);
  return {at, at + bytes};
}

TEST(Runs, a_vector_is_one_run_also_backwards_and_in_place) {
  for (const std::int64_t stride : {16, -16, 0}) {
    std::vector<rma::Run> runs;
    for (int i = 0; i < 100; ++i) append(runs, 10'000 + static_cast<std::uint64_t>(i * stride), 8);
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].count, 100u);
    EXPECT_EQ(runs[0].stride, stride);
  }
}

TEST(Runs, neighbouring_pieces_are_one) {
  std::vector<rma::Run> runs;
  for (std::uint64_t i = 0; i < 50; ++i) append(runs, 4096 + 12 * i, 12);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].bytes, 600u);
}

TEST(Runs, gathering_and_scattering_keep_the_order_of_any_pieces) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> memory(4096), copy(4096);
    for (auto& each : memory) each = static_cast<std::byte>(random());
    std::vector<rma::Run> runs;
    std::vector<std::byte> expected;
    std::uint64_t sum = 0;
    for (std::size_t at = random() % 50; at < 4000;) {
      const std::uint64_t bytes = random() % 3 == 0 ? 8 : 1 + random() % 20;
      const auto address = reinterpret_cast<std::uint64_t>(memory.data()) + at;
      append(runs, address, bytes);
      const auto piece = bytes_of(address, bytes);
      expected.insert(expected.end(), piece.begin(), piece.end());
      sum += bytes;
      at += bytes + (random() % 3 == 0 ? 8 : random() % 30);
    }
    std::uint64_t counted = 0;
    ASSERT_TRUE(count_bytes(runs, counted));
    ASSERT_EQ(counted, sum);
    std::vector<std::byte> packed(sum);
    gather(runs, packed.data());
    ASSERT_EQ(packed, expected);
    std::reverse(packed.begin(), packed.end());
    scatter(runs, packed.data());
    std::vector<std::byte> again(sum);
    gather(runs, again.data());
    ASSERT_EQ(again, packed);
  }
}

TEST(Runs, a_range_is_checked_without_overflow) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto inside = [](const rma::Run& run) { return are_inside(std::span(&run, 1), 1000, 100); };
  EXPECT_TRUE(inside({1000, 100, 0, 1}));
  EXPECT_TRUE(inside({1000, 4, 8, 13}));
  EXPECT_TRUE(inside({1096, 4, -8, 13}));
  EXPECT_FALSE(inside({1000, 101, 0, 1}));
  EXPECT_FALSE(inside({999, 1, 0, 1}));
  EXPECT_FALSE(inside({1000, 4, 8, 14}));
  EXPECT_FALSE(inside({1096, 4, -8, 14}));
  EXPECT_FALSE(inside({1000, most, 0, 1}));
  EXPECT_FALSE(inside({1000, 1, std::numeric_limits<std::int64_t>::min(), 3}));
  EXPECT_FALSE(inside({1000, 1, std::numeric_limits<std::int64_t>::max(), most}));
  std::uint64_t bytes = 0;
  const rma::Run endless{0, 1ull << 40, 0, 1ull << 40};
  EXPECT_FALSE(count_bytes(std::span(&endless, 1), bytes));
  const rma::Run negative{0, most, 0, 1};
  EXPECT_FALSE(count_bytes(std::span(&negative, 1), bytes));
}

TEST(Runs, fragments_cover_a_buffer_and_split_no_element) {
  ASSERT_TRUE(datatype::make_predefined_types().ok());
  datatype::Datatype& pair = *datatype::find_predefined(MPI_DOUBLE_INT);
  datatype::Datatype* every_second = nullptr;
  ASSERT_TRUE(datatype::make_vector(200'000, 1, 2, false, pair, every_second).ok());
  ASSERT_TRUE(datatype::commit(*every_second).ok());
  const datatype::Buffer there{reinterpret_cast<void*>(std::uintptr_t{1} << 40), 1, every_second};
  Fragments fragments(there, pair.size);
  Fragment fragment;
  MPI_Count at = 0;
  int count = 0;
  bool is_last = false;
  for (; fragments.next(fragment); ++count) {
    EXPECT_EQ(fragment.at, at);
    EXPECT_EQ(fragment.bytes % pair.size, 0);
    EXPECT_LE(fragment.bytes, Fragments::most_bytes);
    std::uint64_t bytes = 0;
    ASSERT_TRUE(count_bytes(fragment.runs, bytes));
    EXPECT_EQ(bytes, static_cast<std::uint64_t>(fragment.bytes));
    at += fragment.bytes;
    is_last = fragments.is_last(fragment);
  }
  EXPECT_EQ(at, there.bytes());
  EXPECT_GT(count, 1);
  EXPECT_TRUE(is_last);
  datatype::release(every_second);
}

} // namespace
} // namespace near::rma
