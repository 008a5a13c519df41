// Where NICs are, by folders as the kernel writes them into /sys.
#include "os/nic.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace near::os {
namespace {

namespace fs = std::filesystem;

class Nic : public testing::Test {
protected:
  void SetUp() override {
    std::string name = "/tmp/near-nic-XXXXXX";
    root = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root); }

  void write(const std::string& path, const std::string& text) const {
    const fs::path full = root + "/sys/" + path;
    fs::create_directories(full.parent_path());
    std::ofstream(full) << text << '\n';
  }
  void add_interface(const std::string& name, int node) const {
    write("class/net/" + name + "/device/numa_node", std::to_string(node));
  }
  /// Nodes 0, 2 and 3 with two processors each; 3 is far from the others, and node 5 has no processors.
  void add_nodes() const {
    write("devices/system/node/online", "0,2-3,5");
    const char* processors[] = {"0-1", "2-3", "4-5", ""};
    const char* distances[] = {"10 12 40 50", "12 10 40 50", "40 40 10 50", "50 50 50 10"};
    const int numbers[] = {0, 2, 3, 5};
    for (int i = 0; i < 4; ++i) {
      const std::string folder = "devices/system/node/node" + std::to_string(numbers[i]);
      write(folder + "/cpulist", processors[i]);
      write(folder + "/distance", distances[i]);
    }
  }
  static CpuSet cpus(const char* text) {
    CpuSet made;
    EXPECT_TRUE(parse_cpus(text, made).ok());
    return made;
  }
  std::string root;
};

TEST_F(Nic, is_found_by_its_interface_its_device_or_its_pci_address) {
  add_interface("eth0", 2);
  write("class/infiniband/mlx5_0/device/numa_node", "3");
  write("bus/pci/devices/0000:65:00.0/numa_node", "1");
  EXPECT_EQ(node_of_nic("eth0", root), 2);
  EXPECT_EQ(node_of_nic("mlx5_0", root), 3);
  EXPECT_EQ(node_of_nic("0000:65:00.0", root), 1);
}

TEST_F(Nic, of_a_virtual_machine_is_where_the_device_is_that_carries_it) {
  const std::string pci = "devices/pci0000:80/0000:81:00.0/";
  write(pci + "numa_node", "1");
  write(pci + "virtio0/vendor", "0x1af4");
  fs::create_directories(root + "/sys/class/net/eth0");
  fs::create_directory_symlink(root + "/sys/" + pci + "virtio0", root + "/sys/class/net/eth0/device");
  EXPECT_EQ(node_of_nic("eth0", root), 1);
}

TEST_F(Nic, has_no_node_if_the_kernel_does_not_say) {
  add_interface("eth0", -1);
  write("class/net/veth1/mtu", "1500");
  for (const char* name : {"eth0", "veth1", "none", "", "../net/eth0"})
    EXPECT_EQ(node_of_nic(name, root), -1) << name;
}

TEST_F(Nic, that_consists_of_others_is_where_all_of_them_are) {
  add_interface("eth0", 1);
  add_interface("eth1", 1);
  add_interface("eth2", 0);
  const std::string net = root + "/sys/class/net/";
  auto consists_of = [&](const char* name, std::initializer_list<const char*> lower) {
    fs::create_directories(net + name);
    for (const char* each : lower) fs::create_directory_symlink(net + each, net + name + "/lower_" + each);
  };
  consists_of("bond0", {"eth0", "eth1"});
  consists_of("bond0.7", {"bond0"});
  consists_of("bond1", {"eth1", "eth2"});
  EXPECT_EQ(node_of_nic("bond0", root), 1);
  EXPECT_EQ(node_of_nic("bond0.7", root), 1);
  EXPECT_EQ(node_of_nic("bond1", root), -1);
  consists_of("loop", {"loop"});
  EXPECT_EQ(node_of_nic("loop", root), -1);
}

TEST_F(Nic, is_as_far_as_the_farthest_processor) {
  add_nodes();
  EXPECT_EQ(distance_to_node(2, cpus("2"), root), 10u);
  EXPECT_EQ(distance_to_node(2, cpus("0-3"), root), 12u);
  EXPECT_EQ(distance_to_node(2, cpus("0-5"), root), 40u);
  EXPECT_EQ(distance_to_node(5, cpus("4"), root), 50u);
}

TEST_F(Nic, has_no_distance_if_it_makes_no_difference_or_is_unknown) {
  EXPECT_EQ(distance_to_node(0, cpus("0"), root), 0u) << "no nodes";
  add_nodes();
  EXPECT_EQ(distance_to_node(-1, cpus("0"), root), 0u);
  EXPECT_EQ(distance_to_node(1, cpus("0"), root), 0u) << "no such node";
  EXPECT_EQ(distance_to_node(0, cpus("9"), root), 0u) << "no such processor";
  write("devices/system/node/node0/distance", "10 12");
  EXPECT_EQ(distance_to_node(0, cpus("0"), root), 0u) << "too few distances";
  write("devices/system/node/online", "0");
  EXPECT_EQ(distance_to_node(0, cpus("0"), root), 0u) << "one node";
}

} // namespace
} // namespace near::os
