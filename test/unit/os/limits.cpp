// Control group limits, read from invented file trees.
#include "os/limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace near;
namespace fs = std::filesystem;

namespace {

class limits : public testing::Test {
protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "near-limits-XXXXXX";
    root = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root); }
  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  os::Limits read() { return os::read_limits(root.string()); }
  fs::path root;
};

TEST_F(limits, nothing_readable_means_no_limit) {
  auto found = read();
  EXPECT_TRUE(found.memory.empty());
  EXPECT_TRUE(found.cpu.empty());
  EXPECT_TRUE(found.cpuset.empty());
  EXPECT_EQ(found.least_cpu(), nullptr);
}

TEST_F(limits, version_2_every_ancestor_counts) {
  file("proc/self/cgroup", "0::/a/b\n");
  file("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  file("sys/fs/cgroup/a/b/memory.max", "1073741824\n");
  file("sys/fs/cgroup/a/b/memory.current", "1048576\n");
  file("sys/fs/cgroup/a/memory.max", "536870912\n");
  file("sys/fs/cgroup/a/b/cpuset.cpus.effective", "0-2\n");
  auto found = read();
  ASSERT_EQ(found.cpu.size(), 1u);
  EXPECT_DOUBLE_EQ(found.least_cpu()->cpus, 1.5);
  ASSERT_EQ(found.memory.size(), 2u);
  EXPECT_EQ(found.memory[0].used, 1048576u);
  EXPECT_EQ(found.least_memory()->bytes, 536870912u);
  EXPECT_EQ(found.cpuset.text(), "0-2");
}

TEST_F(limits, version_1_controllers_lie_in_their_own_trees) {
  file("proc/self/cgroup", "5:cpuset:/\n4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n");
  file("proc/self/mountinfo", "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                              "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                              "33 24 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "268435456\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
  file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-3\n");
  auto found = read();
  ASSERT_EQ(found.cpu.size(), 1u);
  EXPECT_DOUBLE_EQ(found.cpu[0].cpus, 2.0);
  ASSERT_EQ(found.memory.size(), 1u);
  EXPECT_EQ(found.memory[0].bytes, 268435456u);
  EXPECT_EQ(found.cpuset.text(), "0-3");
}

TEST_F(limits, a_container_that_sees_a_part_of_the_tree_finds_its_group) {
  file("proc/self/cgroup", "4:memory:/docker/abc\n");
  file("proc/self/mountinfo", "31 24 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
  auto found = read();
  ASSERT_EQ(found.memory.size(), 1u);
  EXPECT_EQ(found.memory[0].bytes, 1000000u);
}

TEST_F(limits, out_of_memory_kills_are_counted) {
  file("proc/self/cgroup", "0::/a\n");
  file("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  file("sys/fs/cgroup/a/memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n");
  file("proc/vmstat", "nr_free_pages 1\noom_kill 5\nballoon 0\n");
  auto kills = os::read_memory_kills(root.string());
  EXPECT_EQ(kills.group, 2u);
  EXPECT_EQ(kills.machine, 5u);
}

TEST_F(limits, cached_file_pages_do_not_count_as_used) {
  file("proc/self/cgroup", "0::/a\n4:memory:/b\n");
  file("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
                              "31 24 0:27 / /sys/fs/memory rw - cgroup cgroup rw,memory\n");
  file("sys/fs/cgroup/a/memory.max", "10000\n");
  file("sys/fs/cgroup/a/memory.current", "5000\n");
  file("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1000\nactive_file 7\n");
  file("sys/fs/memory/b/memory.limit_in_bytes", "20000\n");
  file("sys/fs/memory/b/memory.usage_in_bytes", "6000\n");
  file("sys/fs/memory/b/memory.stat", "cache 9\ninactive_file 500\ntotal_inactive_file 2000\n");
  auto found = read();
  ASSERT_EQ(found.memory.size(), 2u);
  EXPECT_EQ(found.memory[0].used, 4000u);
  EXPECT_EQ(found.memory[1].used, 4000u);
}

TEST_F(limits, out_of_memory_kills_of_version_1_are_counted) {
  file("proc/self/cgroup", "4:memory:/b\n");
  file("proc/self/mountinfo", "31 24 0:27 / /sys/fs/memory rw - cgroup cgroup rw,memory\n");
  file("sys/fs/memory/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  EXPECT_EQ(os::read_memory_kills(root.string()).group, 4u);
}

TEST_F(limits, memory_is_compared_with_what_the_machine_has_available) {
  file("proc/meminfo", "MemTotal:       9999 kB\nMemFree:            1 kB\nMemAvailable:    2048 kB\n");
  EXPECT_TRUE(os::check_memory(1 << 20, root.string()).ok());
  EXPECT_TRUE(os::check_memory(3 << 20, root.string()).is(base::Code::no_memory));
}

TEST(limits_of_this_machine, can_be_read) { (void)os::read_limits(); }

} // namespace
