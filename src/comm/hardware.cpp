#include "comm/hardware.h"

namespace near::comm {
namespace {

constexpr std::string_view scheme = "hwloc://";
constexpr Resource list[] = {
    {"hwloc://Package", &segment::Place::package}, {"hwloc://NUMANode", &segment::Place::numa},
    {"hwloc://L3Cache", &segment::Place::l3},      {"hwloc://L2Cache", &segment::Place::l2},
    {"hwloc://Core", &segment::Place::core},
};

} // namespace

std::span<const Resource> resources() { return list; }

const Resource* find_resource(std::string_view name) {
  for (const Resource& resource : list)
    if (name == resource.name || name == resource.name.substr(scheme.size())) return &resource;
  return nullptr;
}

} // namespace near::comm
