// What other processes can read of this one's memory, tried on itself.
#include "os/peer_memory.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace near::os {
namespace {

TEST(peer_memory, ordinary_memory_is_readable) {
  std::vector<char> memory(100'000);
  EXPECT_TRUE(is_readable_by_peers(memory.data(), memory.size()));
  EXPECT_TRUE(is_readable_by_peers(memory.data(), 1));
}

TEST(peer_memory, memory_whose_first_or_last_byte_is_not_mapped_is_not) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const made = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(made, MAP_FAILED);
  char* const memory = static_cast<char*>(made);
  ASSERT_EQ(munmap(memory, page), 0);
  EXPECT_FALSE(is_readable_by_peers(memory, 3 * page));
  EXPECT_TRUE(is_readable_by_peers(memory + page, 2 * page));
  ASSERT_EQ(munmap(memory + 2 * page, page), 0);
  EXPECT_FALSE(is_readable_by_peers(memory + page, 2 * page));
  EXPECT_TRUE(is_readable_by_peers(memory + page, page));
  munmap(memory + page, page);
}

/// The page of the kernel's clock is like memory of a device: this process can load from it, nobody can have it read.
TEST(peer_memory, memory_that_is_not_ordinary_is_not_readable) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  ASSERT_NE(maps, nullptr);
  char line[512];
  unsigned long begin = 0;
  bool found = false;
  while (!found && std::fgets(line, sizeof line, maps) != nullptr)
    found = std::strstr(line, "[vvar]") != nullptr && std::sscanf(line, "%lx", &begin) == 1;
  std::fclose(maps);
  if (!found) GTEST_SKIP() << "this kernel has no such page";
  EXPECT_FALSE(is_readable_by_peers(reinterpret_cast<void*>(begin), 64));
}

} // namespace
} // namespace near::os
