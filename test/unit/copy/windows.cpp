// Windows, compared byte by byte with the blocks, next to inaccessible pages.
#include "copy/windows.h"
#include "copy/copy.h"
#include "guarded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

using namespace near;

namespace {

/// Blocks of an element, in packed order.
struct Element {
  std::vector<std::int32_t> at, start{0};
  void add(std::int32_t place, std::int32_t bytes) {
    at.push_back(place);
    start.push_back(start.back() + bytes);
  }
  copy::Blocks blocks() const { return {at.data(), start.data(), at.size()}; }
  /// Where each packed byte of `count` elements lies.
  std::vector<std::ptrdiff_t> bytes(std::size_t count, std::ptrdiff_t extent) const {
    std::vector<std::ptrdiff_t> all;
    for (std::size_t element = 0; element < count; ++element)
      for (std::size_t i = 0; i < at.size(); ++i)
        for (std::int32_t byte = 0; byte < start[i + 1] - start[i]; ++byte)
          all.push_back(static_cast<std::ptrdiff_t>(element) * extent + at[i] + byte);
    return all;
  }
  std::ptrdiff_t low() const { return *std::min_element(at.begin(), at.end()); }
  std::ptrdiff_t high() const {
    std::ptrdiff_t most = low();
    for (std::size_t i = 0; i < at.size(); ++i)
      most = std::max<std::ptrdiff_t>(most, at[i] + start[i + 1] - start[i]);
    return most;
  }
};

class Windows : public testing::Test {
protected:
  void SetUp() override {
    for (const copy::Kernel& kernel : copy::kernels())
      if (kernel.runs() && kernel.windows != nullptr) kernel_ = kernel.windows;
    if (kernel_ == nullptr) GTEST_SKIP() << "windows are NOT tested here: no kernel has them";
    for (Guarded* memory : {&strided_, &packed_}) fill(memory->begin(), memory->size());
  }
  void fill(std::byte* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(random_() >> 8);
  }
  int between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  Element random_element(int most_blocks, int longest, int gap) {
    std::vector<std::pair<std::int32_t, std::int32_t>> blocks; // place and length
    std::int32_t at = between(-200, 200);
    for (int left = between(1, most_blocks); left != 0; --left) {
      const std::int32_t length = between(1, longest);
      blocks.emplace_back(at, length);
      at += length + between(0, gap);
    }
    if (between(0, 2) == 0) std::shuffle(blocks.begin(), blocks.end(), random_);
    Element made;
    for (const auto& [place, length] : blocks) made.add(place, length);
    return made;
  }

  /// The bytes of a copy, which writes `size` bytes from `to` on at most, and what it leaves alone around them.
  template <class Write>
  void expect_written(Guarded& memory, std::byte* to, const std::vector<std::byte>& expected, Write write) {
    const auto below = std::min<std::size_t>(100, static_cast<std::size_t>(to - memory.begin()));
    const auto above =
        std::min<std::size_t>(100, static_cast<std::size_t>(memory.end() - to) - expected.size());
    const std::vector<std::byte> before(to - below, to),
        behind(to + expected.size(), to + expected.size() + above);
    write();
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), to));
    ASSERT_TRUE(std::equal(before.begin(), before.end(), to - below)) << "bytes before were written";
    ASSERT_TRUE(std::equal(behind.begin(), behind.end(), to + expected.size()))
        << "bytes behind were written";
  }

  /// Copies `count` elements at both ends of what is accessible, and in between. Returns whether the element has windows.
  bool expect_exact(const Element& element, std::size_t count, std::ptrdiff_t extent) {
    copy::Window memory[copy::Windows::most];
    const copy::Windows windows = copy::cut_into_windows(element.blocks(), extent, memory);
    if (windows.count == 0) return false;
    const copy::WindowFunctions functions = kernel_->of_count[windows.count - 1];
    EXPECT_EQ(functions.gather_one != nullptr, windows.count == 1);
    const std::vector<std::ptrdiff_t> bytes = element.bytes(count, extent);
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(count - 1) * extent,
                         low = element.low() + std::min<std::ptrdiff_t>(last, 0),
                         high = element.high() + std::max<std::ptrdiff_t>(last, 0);
    const auto span = static_cast<std::size_t>(high - low);
    const std::size_t odd = 128 + static_cast<std::size_t>(between(0, 63));
    const std::pair<std::byte*, std::byte*> where[] = {
        {strided_.begin(), packed_.end() - bytes.size()},
        {strided_.end() - span, packed_.begin()},
        {strided_.end() - span, packed_.end() - bytes.size()},
        {strided_.begin() + odd, packed_.begin() + odd + 9},
    };
    for (const auto& [lowest, packed] : where) {
      std::byte* const first = lowest - low;
      std::vector<std::byte> expected;
      for (const std::ptrdiff_t at : bytes) expected.push_back(first[at]);
      expect_written(packed_, packed, expected, [&] { functions.gather(packed, first, windows, count); });
      // Where blocks overlap, the last one in packed order stays.
      fill(packed, bytes.size());
      expected.assign(lowest, lowest + span);
      for (std::size_t i = 0; i < bytes.size(); ++i)
        expected[static_cast<std::size_t>(bytes[i] - low)] = packed[i];
      expect_written(strided_, lowest, expected, [&] { functions.scatter(packed, first, windows, count); });
      if (count != 1 || windows.count != 1) continue;
      const copy::Grid grid{.windows = &windows};
      expected.clear();
      for (const std::ptrdiff_t at : bytes) expected.push_back(first[at]);
      expect_written(packed_, packed, expected, [&] { functions.gather_one(packed, first, grid); });
      fill(packed, bytes.size());
      expected.assign(lowest, lowest + span);
      for (std::size_t i = 0; i < bytes.size(); ++i)
        expected[static_cast<std::size_t>(bytes[i] - low)] = packed[i];
      expect_written(strided_, lowest, expected, [&] { functions.scatter_one(packed, first, grid); });
    }
    return true;
  }

  Guarded strided_{1 << 16}, packed_{1 << 14};
  std::mt19937 random_{1};
  const copy::WindowKernel* kernel_ = nullptr;
};

TEST_F(Windows, elements_of_random_blocks) {
  int cuts = 0;
  for (int trial = 0; trial < 3000 && !HasFatalFailure(); ++trial) {
    const Element element = random_element(between(1, 12), between(1, 70), between(0, 20));
    const std::ptrdiff_t span = element.high() - element.low();
    // Apart, close together, woven into each other, one in front of the other.
    const std::ptrdiff_t extents[] = {span + between(0, 9), span, between(0, static_cast<int>(span)),
                                      -span - between(0, 9)};
    for (const std::ptrdiff_t extent : extents) {
      const auto count = static_cast<std::size_t>(between(0, 3) != 0 ? between(1, 9) : between(10, 40));
      SCOPED_TRACE(testing::Message()
                   << count << " elements of " << element.at.size() << " blocks, " << extent << " apart");
      cuts += expect_exact(element, count, extent);
    }
  }
  EXPECT_GT(cuts, 2000);
}

TEST_F(Windows, elements_that_are_more_than_a_page_apart) {
  int cuts = 0;
  for (int trial = 0; trial < 200 && !HasFatalFailure(); ++trial) {
    const Element element = random_element(between(1, 12), between(1, 70), between(0, 20));
    for (const std::ptrdiff_t extent : {4096, 4097, 4096 + between(1, 3000), -4096 - between(0, 3000)}) {
      const auto count = static_cast<std::size_t>(between(1, 9));
      SCOPED_TRACE(testing::Message()
                   << count << " elements of " << element.at.size() << " blocks, " << extent << " apart");
      cuts += expect_exact(element, count, extent);
    }
  }
  EXPECT_GT(cuts, 200);
}

TEST_F(Windows, every_number_of_elements_of_every_size) {
  for (std::int32_t bytes = 1; bytes <= 64; ++bytes)
    for (std::ptrdiff_t gap = 0; gap <= 3; ++gap)
      for (std::size_t count = 1; count <= 20 && !HasFatalFailure(); ++count) {
        Element element;
        element.add(3, bytes / 2 + 1);
        if (bytes / 2 > 1) element.add(bytes / 2 + 5, bytes / 2 - 1);
        SCOPED_TRACE(testing::Message() << count << " elements of " << bytes << " bytes");
        EXPECT_TRUE(expect_exact(element, count, element.high() - element.low() + gap));
      }
}

TEST_F(Windows, blocks_that_overlap_are_written_in_packed_order) {
  int cuts = 0;
  for (int trial = 0; trial < 500 && !HasFatalFailure(); ++trial) {
    Element element;
    for (int i = 0; i < 4; ++i) element.add(between(0, 40), between(1, 30));
    cuts += expect_exact(element, static_cast<std::size_t>(between(1, 9)), between(-80, 80));
  }
  EXPECT_GT(cuts, 400);
}

TEST_F(Windows, nothing_is_copied_for_no_element) {
  Element element;
  element.add(0, 4);
  element.add(8, 8);
  copy::Window memory[copy::Windows::most];
  for (const std::ptrdiff_t extent : {16, 100}) {
    const copy::Windows windows = copy::cut_into_windows(element.blocks(), extent, memory);
    const copy::WindowFunctions functions = kernel_->of_count[windows.count - 1];
    std::byte *const packed = packed_.begin() + 128, *const strided = strided_.begin() + 128;
    expect_written(packed_, packed, {}, [&] { functions.gather(packed, strided, windows, 0); });
    expect_written(strided_, strided, {}, [&] { functions.scatter(packed, strided, windows, 0); });
  }
}

TEST(windows_of_elements, as_many_elements_as_fit_share_a_window) {
  copy::Window memory[copy::Windows::most];
  Element pair;
  pair.add(0, 4);
  pair.add(8, 8);
  EXPECT_EQ(copy::cut_into_windows(pair.blocks(), 16, memory).group, 4u);
  EXPECT_EQ(copy::cut_into_windows(pair.blocks(), 48, memory).group, 2u);
  EXPECT_EQ(copy::cut_into_windows(pair.blocks(), 49, memory).group, 1u);
  EXPECT_EQ(copy::cut_into_windows(pair.blocks(), 12, memory).group, 1u) << "they are woven into each other";
  EXPECT_EQ(copy::cut_into_windows(pair.blocks(), -16, memory).group, 1u);
  EXPECT_EQ(copy::cut_into_windows(pair.blocks(), 16, memory).count, 1u);
  Element overlapping;
  overlapping.add(0, 40);
  overlapping.add(8, 40);
  EXPECT_EQ(copy::cut_into_windows(overlapping.blocks(), 48, memory).group, 1u);
  EXPECT_EQ(copy::cut_into_windows(overlapping.blocks(), 48, memory).count, 2u);
}

TEST(windows_of_elements, large_and_scattered_elements_have_none) {
  copy::Window memory[copy::Windows::most];
  Element longest, longer, scattered;
  longest.add(0, 256);
  longer.add(0, 257);
  for (std::int32_t i = 0; i < 5; ++i) scattered.add(100 * i, 4);
  EXPECT_EQ(copy::cut_into_windows(longest.blocks(), 300, memory).count, 4u);
  EXPECT_EQ(copy::cut_into_windows(longer.blocks(), 300, memory).count, 0u);
  EXPECT_EQ(copy::cut_into_windows(scattered.blocks(), 600, memory).count, 0u);
}

} // namespace
