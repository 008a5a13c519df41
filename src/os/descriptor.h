// File descriptors: which file one refers to, and getting at one that another process holds.
#pragma once

#include "base/result.h"

#include <cstdint>

namespace near::os {

using base::Result;

/// What tells two open files apart while either is open: the pair that fstat(2) gives.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Which file `descriptor` refers to. Fails (Code::system) when it is not open.
Result identify(int descriptor, FileIdentity& identity);

/// Opens anew, for reading and writing and close-on-exec, what process `pid` holds as `descriptor`, through
/// /proc/<pid>/fd. Fails when that process is gone or this one may not look into it.
Result open_descriptor_of(std::int32_t pid, int descriptor, int& opened);

/// Whether `descriptor` is closed when this process executes another program.
Result set_close_on_exec(int descriptor, bool close);

} // namespace near::os
