// Loading libfabric on a machine without RDMA devices. Debian's library prepares for such devices wherever it is loaded, which
// costs each process 0.1 s of processor time and 0.2 s of sleep (doc/adr/0044).
#pragma once

#include <cstdio>
#include <string>

namespace near::ofi {

/// Whether the kernel knows an RDMA device (InfiniBand, Omni-Path, EFA, iWARP). `root` is prefixed to the path, for tests.
bool has_rdma_devices(const std::string& root = {});

/// Loads libfabric with our own libraries in place of those of PSM and PSM2, if they are installed in the folder `nearmpi` beside
/// this library: they report that there is no device. If they are not, or if libfabric needs more from them, loads it unchanged.
/// Returns null if it cannot be loaded; dlerror() says why.
void* load_without_rdma();

/// Replaces fopen() while libfabric starts: libfabric searches all symbols of the kernel, twice, for what RDMA devices can do with
/// the memory of GPUs.
std::FILE* open_but_symbols(const char* path, const char* mode);

} // namespace near::ofi
