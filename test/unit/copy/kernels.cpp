// Every kernel, compared byte by byte at every misalignment and length, next to inaccessible pages.
#include "copy/copy.h"
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
    copy_ = kernel->streaming;
  }

  /// Copies and compares. Up to `around` bytes before and after the destination must not change.
  void expect_exact(Guarded& destination, std::byte* to, Guarded& source, const std::byte* from,
                    std::size_t bytes) {
    const std::size_t below = std::min(around, static_cast<std::size_t>(to - destination.begin()));
    const std::size_t above = std::min(around, static_cast<std::size_t>(destination.end() - to) - bytes);
    std::memset(to - below, untouched, below + bytes + above);
    copy_(to, from, bytes);
    const bool copied = std::memcmp(from, to, bytes) == 0;
    const bool kept = stays_untouched(to - below, below) && stays_untouched(to + bytes, above);
    ASSERT_TRUE(copied && kept) << (copied ? "wrote beside the destination" : "did not copy") << ": " << bytes
                                << " bytes from " << from - source.begin() << " to "
                                << to - destination.begin();
  }

  decltype(copy::Kernel::streaming) copy_ = nullptr;
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

INSTANTIATE_TEST_SUITE_P(all, Kernels, testing::ValuesIn(names),
                         [](const auto& row) { return std::string(row.param); });

} // namespace
