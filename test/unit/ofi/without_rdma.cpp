// What libfabric is spared on machines without devices for RDMA.
#include "ofi/without_rdma.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

namespace near::ofi {
namespace {

namespace fs = std::filesystem;

TEST(Rdma, has_devices_if_the_kernel_lists_any) {
  std::string name = "/tmp/near-rdma-XXXXXX";
  const fs::path root = mkdtemp(name.data());
  const fs::path devices = root / "sys/class/infiniband";
  EXPECT_FALSE(has_rdma_devices(root));
  fs::create_directories(devices);
  EXPECT_FALSE(has_rdma_devices(root));
  fs::create_directory(devices / "mlx5_0");
  EXPECT_TRUE(has_rdma_devices(root));
  fs::remove_all(root);
}

TEST(Files, are_opened_except_the_kernels_symbols) {
  EXPECT_EQ(open_but_symbols("/proc/kallsyms", "r"), nullptr);
  EXPECT_EQ(errno, EACCES);
  std::FILE* other = open_but_symbols("/proc/self/status", "r");
  ASSERT_NE(other, nullptr);
  std::fclose(other);
}

} // namespace
} // namespace near::ofi
