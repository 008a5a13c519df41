// Which kernel is in use, that its copies are published by a release, and that dropped lines keep their
// values.
#include "base/atomic.h"
#include "copy/copy.h"
#include "guarded.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace near;

namespace {

/// Puts the kernel that was in use back.
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
  bool avx2 = false, avx512 = false;
  for (std::string word; words >> word;) avx2 |= word == "avx2", avx512 |= word == "avx512f";
  for (const copy::Kernel& kernel : copy::kernels()) {
    if (kernel.name == "avx2") EXPECT_EQ(kernel.runs(), avx2);
    if (kernel.name == "avx512") EXPECT_EQ(kernel.runs(), avx512);
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

TEST(publishing, a_release_after_a_copy_publishes_all_of_it) {
  constexpr std::size_t words = 1000;
  constexpr std::uint64_t rounds = 2000;
  std::vector<std::uint64_t> source(words), shared(words + 1);
  base::Atomic<std::uint64_t> published{0}, seen{0};
  bool right = true, gave_up = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto wait_for = [&](const base::Atomic<std::uint64_t>& word, std::uint64_t value) {
    while (word.load_acquire() != value) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  };
  std::thread reader([&] {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      if (!wait_for(published, round)) return void(gave_up = true);
      for (std::size_t i = 0; i < words; ++i) right &= shared[i] == round;
      seen.store_release(round);
    }
  });
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    source.assign(words, round);
    copy::copy(shared.data(), source.data(), words * sizeof source[0],
               round % 2 == 0 ? copy::Store::cached : copy::Store::streaming);
    published.store_release(round);
    if (!wait_for(seen, round)) break;
  }
  reader.join();
  EXPECT_FALSE(gave_up);
  EXPECT_TRUE(right);
}

TEST(dropping, bytes_keep_their_values_at_every_alignment) {
  Guarded memory(4096);
  for (std::size_t i = 0; i < memory.size(); ++i) memory.begin()[i] = static_cast<std::byte>(i % 251);
  for (std::size_t first = 0; first < 130; ++first) {
    copy::drop(memory.begin() + first, memory.size() - first);
    copy::drop(memory.begin() + first, first);
  }
  copy::drop(memory.end(), 0); // a page that may not be touched
  for (std::size_t i = 0; i < memory.size(); ++i)
    ASSERT_EQ(memory.begin()[i], static_cast<std::byte>(i % 251)) << i;
}

TEST(dropping, a_store_after_it_counts) {
  Guarded memory(4096);
  for (int round = 0; round < 1000; ++round) {
    std::memset(memory.begin(), round, memory.size());
    copy::drop(memory.begin(), memory.size());
    memory.begin()[round] = std::byte{0xff};
    ASSERT_EQ(memory.begin()[round], std::byte{0xff});
    ASSERT_EQ(memory.begin()[memory.size() - 1], static_cast<std::byte>(round));
  }
}

} // namespace
