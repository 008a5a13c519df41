// Every kernel, compared byte by byte at every misalignment and length, next to inaccessible pages.
#include "copy/copy.h"
#include "copy/raw.h"
#include "guarded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace near;

namespace {

constexpr std::size_t line = 64;
constexpr std::size_t around = 2 * line;
constexpr int untouched = 0xa5;

bool stays_untouched(const std::byte* from, std::size_t bytes) {
  static const std::vector<std::uint8_t> expected(around, untouched);
  return std::memcmp(from, expected.data(), bytes) == 0;
}

/// Copies and compares. Up to `around` bytes before and after the destination must not change.
template <class Copy>
void expect_copied(Copy copy, Guarded& destination, std::byte* to, Guarded& source, const std::byte* from,
                   std::size_t bytes) {
  const std::size_t below = std::min(around, static_cast<std::size_t>(to - destination.begin()));
  const std::size_t above = std::min(around, static_cast<std::size_t>(destination.end() - to) - bytes);
  std::memset(to - below, untouched, below + bytes + above);
  copy(to, from, bytes);
  const bool copied = std::memcmp(from, to, bytes) == 0;
  const bool kept = stays_untouched(to - below, below) && stays_untouched(to + bytes, above);
  ASSERT_TRUE(copied && kept) << (copied ? "wrote beside the destination" : "did not copy") << ": " << bytes
                              << " bytes from " << from - source.begin() << " to "
                              << to - destination.begin();
}

/// Kernels of all architectures, so that those that cannot be tested here are reported as skipped.
const char* const names[] = {"avx512vbmi", "avx512", "avx2", "sse2", "neon"};

class Kernels : public testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    const char* const name = GetParam();
    const auto all = copy::kernels();
    const auto kernel =
        std::find_if(all.begin(), all.end(), [&](const auto& row) { return row.name == name; });
    if (kernel == all.end())
      GTEST_SKIP() << "kernel " << name << " is NOT tested here: another architecture's";
    if (!kernel->runs()) GTEST_SKIP() << "kernel " << name << " is NOT tested here: no " << kernel->needs;
    kernel_ = &*kernel;
  }

  void expect_exact(Guarded& destination, std::byte* to, Guarded& source, const std::byte* from,
                    std::size_t bytes) {
    expect_copied(kernel_->streaming, destination, to, source, from, bytes);
    if (!HasFatalFailure()) expect_copied(kernel_->looping, destination, to, source, from, bytes);
  }
  const copy::Kernel* kernel_ = nullptr;
};

/// Adjacent lines differ, adjacent bytes differ, and no byte equals `untouched`.
void fill_with_pattern(Guarded& memory) {
  std::uint32_t state = 1;
  for (std::byte* at = memory.begin(); at != memory.end(); ++at) {
    state = state * 1664525u + 1013904223u;
    *at = static_cast<std::byte>(state >> 24 == untouched ? 0 : state >> 24);
  }
}

TEST_P(Kernels, copy_every_length_up_to_300_at_every_misalignment) {
  Guarded source(4096), destination(4096);
  fill_with_pattern(source);
  for (std::size_t to = 0; to < line; ++to)
    for (std::size_t from = 0; from < line; ++from)
      for (std::size_t bytes = 0; bytes <= 300; ++bytes) {
        expect_exact(destination, destination.begin() + line + to, source, source.begin() + line + from,
                     bytes);
        if (HasFatalFailure()) return;
      }
}

TEST_P(Kernels, copy_long_ranges_with_odd_heads_and_tails) {
  constexpr std::size_t most = 70'000;
  Guarded source(most + 4 * line), destination(most + 4 * line);
  fill_with_pattern(source);
  for (std::size_t whole : {512u, 1024u, 2048u, 4096u, 8192u, 65'536u})
    for (std::size_t odd : {0u, 1u, 63u, 64u, 65u, 127u, 255u, 257u, 4095u})
      for (std::size_t to : {0u, 1u, 8u, 16u, 31u, 32u, 48u, 63u})
        for (std::size_t from : {0u, 1u, 8u, 16u, 31u, 32u, 48u, 63u}) {
          expect_exact(destination, destination.begin() + line + to, source, source.begin() + from,
                       whole + odd);
          if (HasFatalFailure()) return;
        }
}

TEST_P(Kernels, touch_no_byte_beside_the_ranges) {
  constexpr std::size_t most = 16'384;
  Guarded source(most), destination(most);
  fill_with_pattern(source);
  std::vector<std::size_t> lengths;
  for (std::size_t bytes = 0; bytes <= 700; ++bytes) lengths.push_back(bytes);
  for (std::size_t bytes = 1000; bytes <= most; bytes += 617) lengths.push_back(bytes);
  lengths.push_back(most);
  for (std::size_t bytes : lengths)
    for (std::byte* to : {destination.begin(), destination.end() - bytes})
      for (std::byte* from : {source.begin(), source.end() - bytes}) {
        expect_exact(destination, to, source, from, bytes);
        if (HasFatalFailure()) return;
      }
}

TEST(raw, has_a_loop_for_destinations_that_begin_just_behind_the_source_in_their_pages) {
  constexpr std::size_t most = 12'288;
  Guarded source(most), destination(most);
  fill_with_pattern(source);
  const bool here = copy::strings_are_slow_just_past;
  copy::strings_are_slow_just_past = true;
  int loops = 0;
  for (std::size_t bytes : {0u, 100u, 2047u, 2048u, 2049u, 4096u, 7000u})
    for (std::size_t from : {0u, 16u, 4080u})
      for (std::size_t behind = 0; behind <= 130; ++behind) {
        const std::byte* const in = source.begin() + from;
        std::byte* const out = destination.begin() + line * 2 + (from + behind + 4096 - line * 2) % 4096;
        loops += copy::is_slow_for_strings(out, in, bytes);
        expect_copied(copy::raw, destination, out, source, in, bytes);
        if (testing::Test::HasFatalFailure()) return;
      }
  EXPECT_EQ(loops, 3 * 3 * 63);
  EXPECT_FALSE(copy::is_slow_for_strings(destination.begin() + 16, source.begin(), (1 << 20) + 1));
  copy::strings_are_slow_just_past = false;
  EXPECT_FALSE(copy::is_slow_for_strings(destination.begin() + 16, source.begin(), 4096));
  copy::strings_are_slow_just_past = here;
}

TEST(raw, ranges_that_overlap_keep_their_bytes) {
  const bool here = copy::strings_are_slow_just_past;
  copy::strings_are_slow_just_past = true;
  for (std::ptrdiff_t past : {-4080, -16, 0, 1, 16, 63, 2800, 4096 + 16, 3 * 4096 + 31})
    for (std::size_t bytes : {100u, 2049u, 4097u, 9000u}) {
      Guarded memory(32'768);
      fill_with_pattern(memory);
      const std::vector<std::byte> before(memory.begin(), memory.end());
      copy::raw_overlapping(memory.begin() + 5000 + past, memory.begin() + 5000, bytes);
      EXPECT_EQ(std::memcmp(memory.begin() + 5000 + past, before.data() + 5000, bytes), 0)
          << past << ' ' << bytes;
    }
  copy::strings_are_slow_just_past = here;
}

INSTANTIATE_TEST_SUITE_P(all, Kernels, testing::ValuesIn(names),
                         [](const auto& row) { return std::string(row.param); });

} // namespace
