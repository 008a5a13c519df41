#include "ofi/without_rdma.h"

#include "os/files.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>

namespace near::ofi {
namespace {

constexpr const char* fabric = "libfabric.so.1";

/// The folder of the file that contains this code, with a trailing slash; "" if it has none.
std::string own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&load_without_rdma), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string file = info.dli_fname;
  return file.substr(0, file.rfind('/') + 1);
}

} // namespace

bool has_rdma_devices(const std::string& root) { return os::has_entries(root + "/sys/class/infiniband"); }

void* load_without_rdma() {
  const std::string own = own_folder(), folder = own + "nearmpi/";
  std::array<void*, 2> absent = {};
  bool complete = own.starts_with('/'); // a relative path may lead to somebody else's file by now
  // A loaded library with the name of one that libfabric needs is used in its place.
  for (std::size_t i = 0; const char* name : {"libpsm_infinipath.so.1", "libpsm2.so.2"}) {
    absent[i] = !complete ? nullptr : dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    complete = complete && absent[i++] != nullptr;
  }
  void* handle = complete ? dlopen(fabric, RTLD_NOW | RTLD_LOCAL) : nullptr;
  for (void* each : absent)
    if (each != nullptr) dlclose(each); // libfabric keeps what it needs
  return handle != nullptr ? handle : dlopen(fabric, RTLD_NOW | RTLD_LOCAL);
}

std::FILE* open_but_symbols(const char* path, const char* mode) {
  if (std::strcmp(path, "/proc/kallsyms") != 0) return std::fopen(path, mode);
  errno = EACCES;
  return nullptr;
}

} // namespace near::ofi
