// The locations of pages of this process and of others.
#include "os/pages.h"
#include "os/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace near;
using base::Code;

namespace {

/// Pages of this process that do not exist until they are written.
struct Fresh {
  explicit Fresh(std::size_t count) : bytes(count * os::page_size()) {
    base = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    madvise(base, bytes, MADV_NOHUGEPAGE);
  }
  ~Fresh() { munmap(base, bytes); }
  char& page(std::size_t number) { return base[number * os::page_size()]; }
  std::uint64_t address(std::size_t number) { return reinterpret_cast<std::uint64_t>(&page(number)); }
  std::size_t bytes;
  char* base;
};

TEST(pages, only_pages_that_were_written_are_in_the_table) {
  Fresh memory(64);
  memory.page(3) = 1;
  memory.page(40) = 1;
  os::PageTable table;
  ASSERT_TRUE(table.open(getpid()).ok()) << base::failure_text();
  std::vector<os::PageEntry> found;
  ASSERT_TRUE(table.entries(memory.address(0), memory.address(0) + memory.bytes, found).ok());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].address, memory.address(3));
  EXPECT_EQ(found[1].address, memory.address(40));
  EXPECT_TRUE(found[0].present && found[0].exclusive && !found[0].shared_or_file && !found[0].swapped);
}

TEST(pages, holes_of_a_large_range_cost_nothing) {
  constexpr std::size_t count = 1u << 18; // 1 GiB of addresses
  Fresh memory(count);
  memory.page(count - 1) = 1;
  os::PageTable table;
  ASSERT_TRUE(table.open(getpid()).ok());
  std::vector<os::PageEntry> found;
  ASSERT_TRUE(table.entries(memory.address(0), memory.address(0) + memory.bytes, found).ok());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].address, memory.address(count - 1));
}

TEST(pages, the_node_of_a_page_is_one_of_the_machine) {
  std::vector<os::Node> nodes;
  if (!os::read_nodes(nodes).ok()) GTEST_SKIP() << base::failure_text();
  Fresh memory(3);
  memory.page(0) = 1;
  [[maybe_unused]] volatile char zero = memory.page(1); // only read: maps the kernel's zero page
  std::vector<std::uint64_t> asked{memory.address(0), memory.address(1), memory.address(2)};
  std::vector<int> told;
  auto result = os::nodes_of_pages(getpid(), asked, told);
  if (result.is(Code::unsupported) || result.is(Code::refused)) GTEST_SKIP() << base::failure_text();
  ASSERT_TRUE(result.ok()) << base::failure_text();
  EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(), [&](auto& node) { return node.number == told[0]; }));
  EXPECT_EQ(told[1], os::zero_page);
  EXPECT_EQ(told[2], os::no_page);
}

TEST(pages, a_process_that_does_not_exist_is_gone) {
  constexpr std::int32_t nobody = 0x7ffffff0; // above any limit on process IDs
  std::string text;
  EXPECT_TRUE(os::read_process_file(nobody, "smaps", text).is(Code::gone));
  EXPECT_NE(base::failure_text().find("no process 2147483632"), std::string_view::npos);
  os::PageTable table;
  EXPECT_TRUE(table.open(nobody).is(Code::gone));
  std::vector<std::uint64_t> asked{4096};
  std::vector<int> told;
  EXPECT_TRUE(os::nodes_of_pages(nobody, asked, told).is(Code::gone));
  EXPECT_TRUE(os::threads_of(nobody).empty());
}

TEST(pages, somebody_elses_process_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  pid_t root = getpid(), child = fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (setgid(nobody) != 0 || setuid(nobody) != 0) _exit(2);
    std::string text;
    os::PageTable table;
    bool refused =
        os::read_process_file(root, "smaps", text).is(Code::refused) && table.open(root).is(Code::refused);
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "2: could not become somebody else, 1: was not refused";
}

TEST(pages, a_file_that_the_kernel_lacks_is_unsupported) {
  std::string text;
  EXPECT_TRUE(os::read_process_file(getpid(), "no_such_file", text).is(Code::unsupported));
}

TEST(pages, a_file_is_traversed_from_data_to_data) {
  int descriptor = memfd_create("pages", MFD_CLOEXEC);
  auto page = static_cast<off_t>(os::page_size());
  ASSERT_EQ(ftruncate(descriptor, 1 << 30), 0);
  char byte = 1;
  ASSERT_EQ(pwrite(descriptor, &byte, 1, 5 * page), 1);
  ASSERT_EQ(pwrite(descriptor, &byte, 1, 900 * page), 1);
  std::uint64_t first = 0, behind = 0;
  ASSERT_TRUE(os::next_data(descriptor, 0, 1 << 30, first, behind));
  EXPECT_EQ(first, 5u * os::page_size());
  EXPECT_EQ(behind, 6u * os::page_size());
  ASSERT_TRUE(os::next_data(descriptor, behind, 1 << 30, first, behind));
  EXPECT_EQ(first, 900u * os::page_size());
  EXPECT_FALSE(os::next_data(descriptor, behind, 1 << 30, first, behind));
  EXPECT_FALSE(os::next_data(descriptor, 0, 5u * os::page_size(), first, behind)) << "it lies behind the end";
  close(descriptor);
}

class nodes : public testing::Test {
protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "near-nodes-XXXXXX";
    root = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void file(const std::string& path, const std::string& text) {
    auto whole = root / "sys/devices/system/node" / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::filesystem::path root;
};

TEST_F(nodes, numbers_may_have_gaps_and_a_node_may_have_no_processor) {
  file("online", "0,8\n");
  file("node0/cpulist", "0-3\n");
  file("node0/meminfo", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree:         512 kB\n");
  file("node8/cpulist", "\n");
  file("node8/meminfo", "Node 8 MemTotal:       2048 kB\nNode 8 MemFree:        2000 kB\n");
  std::vector<os::Node> found;
  ASSERT_TRUE(os::read_nodes(found, root).ok()) << base::failure_text();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].cpus.text(), "0-3");
  EXPECT_EQ(found[0].free_bytes, 512u << 10);
  EXPECT_EQ(found[1].number, 8);
  EXPECT_TRUE(found[1].cpus.empty());
  EXPECT_EQ(found[1].bytes, 2048u << 10);
}

TEST_F(nodes, a_kernel_without_nodes_is_reported) {
  std::vector<os::Node> found;
  EXPECT_TRUE(os::read_nodes(found, root).is(Code::unsupported));
}

} // namespace
