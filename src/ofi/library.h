// libfabric, loaded when the first network endpoint is opened. Jobs on one machine neither need it nor pay for it.
#pragma once

#include "base/result.h"

#include <rdma/fabric.h>

namespace near::ofi {

using base::Result;

/// The functions that libfabric exports; all others are reached through the objects that these create.
struct Library {
  int (*getinfo)(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                 const fi_info* hints, fi_info** info) = nullptr;
  void (*freeinfo)(fi_info* info) = nullptr;
  fi_info* (*dupinfo)(const fi_info* info) = nullptr;
  int (*fabric)(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) = nullptr;
  const char* (*strerror)(int error) = nullptr;
  std::uint32_t (*version)() = nullptr;
};

/// Loads libfabric, once. Fails with Code::unsupported if it is not installed or older than 1.15.
Result load_library(const Library*& library);

/// Records "<call>: <reason>" for a negative error number of libfabric; Code::system.
[[gnu::cold]] Result fail_fabric(const char* call, std::int64_t error);

} // namespace near::ofi
