#include "os/nic.h"

#include "base/result.h"
#include "os/files.h"
#include "os/pages.h"

#include <algorithm>
#include <dirent.h>

namespace near::os {
namespace {

/// Enough for a bond of VLANs of bonds. No interface contains itself.
constexpr int most_levels = 4;

/// The number in a file of /sys; -1 if there is none.
int number_or_none(const std::string& path) {
  int number = -1;
  (void)read_number(read_file(path), number);
  return number;
}

/// The node of the device of an interface, or of the device that carries it: a virtual machine's NIC (virtio) is part of a PCI
/// device, and only that has a node.
int node_of_device(const std::string& folder) {
  const int node = number_or_none(folder + "/numa_node");
  return node >= 0 ? node : number_or_none(folder + "/../numa_node");
}

/// The interfaces that make up this one: the kernel has a link "lower_eth0" for each.
std::vector<std::string> lower_interfaces(const std::string& folder) {
  constexpr std::string_view prefix = "lower_";
  std::vector<std::string> found;
  DIR* listing = opendir(folder.c_str());
  if (listing == nullptr) return found;
  for (const dirent* entry = readdir(listing); entry != nullptr; entry = readdir(listing))
    if (const std::string_view name = entry->d_name; name.starts_with(prefix))
      found.emplace_back(name.substr(prefix.size()));
  closedir(listing);
  return found;
}

int node_of_interface(std::string_view name, const std::string& root, int levels) {
  const std::string folder = base::format("{}/sys/class/net/{}", root, name);
  const std::vector<std::string> lower = levels > 0 ? lower_interfaces(folder) : std::vector<std::string>{};
  if (lower.empty()) return node_of_device(folder + "/device");
  const int first = node_of_interface(lower[0], root, levels - 1);
  const bool agree = std::all_of(lower.begin(), lower.end(), [&](const std::string& each) {
    return node_of_interface(each, root, levels - 1) == first;
  });
  return agree ? first : -1;
}

} // namespace

int node_of_nic(std::string_view name, const std::string& root) {
  if (name.empty() || name.find('/') != std::string_view::npos) return -1;
  for (const auto& device : {base::format("{}/sys/bus/pci/devices/{}", root, name),
                             base::format("{}/sys/class/infiniband/{}/device", root, name)})
    if (const int node = node_of_device(device); node >= 0) return node;
  return node_of_interface(name, root, most_levels);
}

unsigned distance_to_node(int node, const CpuSet& cpus, const std::string& root) {
  std::vector<Node> nodes;
  if (node < 0 || !read_nodes(nodes, root).ok() || nodes.size() < 2) return 0;
  // The row holds a distance to each online node, in the order of their numbers.
  const std::string row = read_file(base::format("{}/sys/devices/system/node/node{}/distance", root, node));
  const auto distances = words_of(row);
  if (distances.size() != nodes.size()) return 0;
  unsigned farthest = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    unsigned distance = 0;
    if ((nodes[i].cpus & cpus).empty()) continue;
    if (!read_number(distances[i], distance)) return 0;
    farthest = std::max(farthest, distance);
  }
  return farthest;
}

} // namespace near::os
