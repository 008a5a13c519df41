#include "ofi/library.h"

#include "ofi/without_rdma.h"
#include "os/import.h"
#include "os/library_functions.h"

#include <cstdlib>
#include <dlfcn.h>

namespace near::ofi {

namespace {

constexpr std::uint32_t oldest = FI_VERSION(1, 15);

Library loaded;

/// The first call prepares all providers. This one asks only for their names.
void start_without_rdma(void* handle, const Library& library) {
  const os::ReplacedImport replaced(handle, "fopen", &open_but_symbols);
  fi_info* names = nullptr;
  if (library.getinfo(oldest, nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &names) == 0)
    library.freeinfo(names);
}

} // namespace

Result load_library(const Library*& library) {
  library = &loaded;
  if (loaded.version != nullptr) return {};
  // tcp;ofi_rxm sends longer messages by a rendezvous of its own, with two more round trips. The limit is 16 KiB unless the
  // variable says otherwise; our packets are a little longer.
  setenv("FI_OFI_RXM_BUFFER_SIZE", "16640", 0);
  // A message must not be reported as sent while its end is in the provider's memory: the program may stop calling MPI.
  for (const char* size : {"FI_NET_STAGING_SBUF_SIZE", "FI_TCP_STAGING_SBUF_SIZE"}) setenv(size, "0", 0);
  // Never closed: a provider may have threads that run its code.
  const bool rdma = has_rdma_devices();
  void* handle = rdma ? dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL) : load_without_rdma();
  if (handle == nullptr)
    return base::fail(base::Code::unsupported,
                      "libfabric, which reaches other machines, cannot be loaded ({}); install it (Debian: "
                      "libfabric1)",
                      dlerror());
  Library found;
  if (!os::find_function(handle, "fi_getinfo", found.getinfo) ||
      !os::find_function(handle, "fi_freeinfo", found.freeinfo) ||
      !os::find_function(handle, "fi_dupinfo", found.dupinfo) ||
      !os::find_function(handle, "fi_fabric", found.fabric) ||
      !os::find_function(handle, "fi_strerror", found.strerror) ||
      !os::find_function(handle, "fi_version", found.version))
    return base::fail(base::Code::unsupported, "libfabric.so.1 lacks a function: {}", dlerror());
  const std::uint32_t version = found.version();
  if (version < oldest)
    return base::fail(base::Code::unsupported, "libfabric is version {}.{}; {}.{} or newer is needed",
                      FI_MAJOR(version), FI_MINOR(version), FI_MAJOR(oldest), FI_MINOR(oldest));
  if (!rdma) start_without_rdma(handle, found);
  loaded = found;
  return {};
}

Result fail_fabric(const char* call, std::int64_t error) {
  const int number = static_cast<int>(error < 0 ? -error : error);
  return base::fail(base::Code::system, "{}: {}", call,
                    loaded.strerror != nullptr ? loaded.strerror(number) : "libfabric is not loaded");
}

} // namespace near::ofi
