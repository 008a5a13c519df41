// The choice of the kernel; a release publishes its copies.
#include "base/atomic.h"
#include "copy/copy.h"
#include "guarded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace near;

namespace {

/// Restores the kernel that was in use.
struct Restore {
  std::string_view name = copy::chosen().name;
  ~Restore() { copy::choose(name); }
};

TEST(choice, the_most_capable_kernel_that_runs_is_in_use) {
  for (const copy::Kernel& kernel : copy::kernels()) {
    if (!kernel.runs()) continue;
    EXPECT_EQ(copy::chosen().name, kernel.name);
    return;
  }
  FAIL() << "no kernel runs here";
}

TEST(choice, the_last_kernel_needs_nothing) {
  EXPECT_TRUE(copy::kernels().back().runs());
  EXPECT_EQ(copy::kernels().back().needs, "");
}

#if defined(__x86_64__)
TEST(choice, what_the_system_says_of_the_processor_is_believed) {
  std::ifstream file("/proc/cpuinfo");
  std::string row;
  while (std::getline(file, row) && !row.starts_with("flags")) {}
  if (!row.starts_with("flags")) GTEST_SKIP() << "/proc/cpuinfo has no flags here";
  std::istringstream words(row);
  bool avx2 = false, avx512 = false, vbmi = false;
  for (std::string word; words >> word;)
    avx2 |= word == "avx2", avx512 |= word == "avx512f", vbmi |= word == "avx512vbmi";
  for (const copy::Kernel& kernel : copy::kernels()) {
    if (kernel.name == "avx2") EXPECT_EQ(kernel.runs(), avx2);
    if (kernel.name == "avx512") EXPECT_EQ(kernel.runs(), avx512);
    if (kernel.name == "avx512vbmi") EXPECT_EQ(kernel.runs(), avx512 && vbmi);
  }
}
#endif

TEST(choice, a_kernel_can_be_asked_for_by_name) {
  const Restore restore;
  const std::string_view best = copy::chosen().name;
  EXPECT_EQ(copy::kernel_name().find(best), 0u) << copy::kernel_name();
  for (const copy::Kernel& kernel : copy::kernels()) {
    const std::string_view before = copy::chosen().name;
    EXPECT_EQ(copy::choose(kernel.name), kernel.runs()) << kernel.name;
    EXPECT_EQ(copy::chosen().name, kernel.runs() ? kernel.name : before);
    if (kernel.runs() && kernel.name != best)
      EXPECT_NE(copy::kernel_name().find("instead of " + std::string(best)), std::string::npos);
  }
}

TEST(choice, an_unknown_kernel_is_refused) {
  const std::string_view before = copy::chosen().name;
  EXPECT_FALSE(copy::choose("mmx"));
  EXPECT_EQ(copy::chosen().name, before);
}

constexpr std::uint64_t stop = ~0ull;

/// Returns true once `word` has the value, false at `stop` or the deadline.
bool wait_for(const base::Atomic<std::uint64_t>& word, std::uint64_t value,
              std::chrono::steady_clock::time_point deadline) {
  for (unsigned looks = 1; word.load_acquire() != value; ++looks) {
    if (looks % 4096 != 0) continue; // no pause: the reader should read as early as it can
    if (word.load_acquire() == stop || std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A few lines, read from last to first: without the kernel's fence, some would arrive late.
TEST(publishing, a_release_after_a_streaming_copy_publishes_all_of_it) {
  using std::chrono::steady_clock;
  struct alignas(4096) {
    std::uint64_t source[64], shared[64];
  } memory{};
  const Restore restore;
  for (const copy::Kernel& kernel : copy::kernels()) {
    if (!copy::choose(kernel.name)) continue;
    base::Atomic<std::uint64_t> published{0}, seen{0};
    const auto enough = steady_clock::now() + std::chrono::milliseconds(500);
    const auto deadline = enough + std::chrono::seconds(60);
    bool right = true, reader_gave_up = false;
    std::thread reader([&] {
      for (std::uint64_t round = 1;; ++round) {
        if (!wait_for(published, round, deadline))
          return void(reader_gave_up = published.load_acquire() != stop);
        for (std::size_t i = std::size(memory.shared); i-- > 0;) right &= memory.shared[i] == round;
        seen.store_release(round);
      }
    });
    bool answered = true;
    for (std::uint64_t round = 1; answered && steady_clock::now() < enough; ++round) {
      std::fill(std::begin(memory.source), std::end(memory.source), round);
      copy::copy(memory.shared, memory.source, sizeof memory.source, copy::Store::streaming);
      published.store_release(round);
      answered = wait_for(seen, round, deadline);
    }
    published.store_release(stop);
    reader.join();
    EXPECT_TRUE(right) << kernel.name;
    EXPECT_TRUE(answered && !reader_gave_up) << kernel.name << " has stopped";
  }
}

TEST(publishing, a_cached_copy_is_a_copy) {
  std::vector<std::uint64_t> source(1000), to(1001, 7);
  std::iota(source.begin(), source.end(), 0);
  copy::copy(to.data(), source.data(), 1000 * sizeof source[0], copy::Store::cached);
  EXPECT_TRUE(std::equal(source.begin(), source.end(), to.begin()));
  EXPECT_EQ(to.back(), 7u);
}

} // namespace
