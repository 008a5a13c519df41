#include "boot/pmix_library.h"

#include "os/library_functions.h"

#include <dlfcn.h>

namespace near::boot::pmix {

namespace {

Library loaded;

} // namespace

Result load_library(const Library*& library) {
  library = &loaded;
  if (loaded.Init != nullptr) return {};
  // Never closed, since one of its threads runs its code.
  void* handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return base::fail(base::Code::unsupported,
                      "libpmix, by which PMIx launchers tell processes who they are, cannot be loaded ({}); "
                      "install it (Debian: libpmix2), or with Slurm say srun --mpi=pmi2",
                      dlerror());
  Library found;
  if (!os::find_function(handle, "PMIx_Init", found.Init) ||
      !os::find_function(handle, "PMIx_Finalize", found.Finalize) ||
      !os::find_function(handle, "PMIx_Abort", found.Abort) ||
      !os::find_function(handle, "PMIx_Put", found.Put) ||
      !os::find_function(handle, "PMIx_Commit", found.Commit) ||
      !os::find_function(handle, "PMIx_Fence", found.Fence) ||
      !os::find_function(handle, "PMIx_Fence_nb", found.Fence_nb) ||
      !os::find_function(handle, "PMIx_Get", found.Get) ||
      !os::find_function(handle, "PMIx_Register_event_handler", found.Register_event_handler) ||
      !os::find_function(handle, "PMIx_Error_string", found.Error_string))
    return base::fail(base::Code::unsupported,
                      "libpmix.so.2 lacks a function ({}); version 3 or newer is needed", dlerror());
  loaded = found;
  return {};
}

} // namespace near::boot::pmix
