#include "comm/hardware.h"

namespace near::comm {
namespace {

constexpr Resource list[] = {
    {"hwloc://Package", &segment::Location::package}, {"hwloc://NUMANode", &segment::Location::numa},
    {"hwloc://L3Cache", &segment::Location::l3},      {"hwloc://L2Cache", &segment::Location::l2},
    {"hwloc://Core", &segment::Location::core},
};

} // namespace

std::span<const Resource> resources() { return list; }

const Resource* find_resource(std::string_view name) {
  for (const Resource& resource : list)
    if (name == resource.name || name == resource.name.substr(scheme.size())) return &resource;
  return nullptr;
}

} // namespace near::comm
