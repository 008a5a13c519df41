// Loading libfabric on a machine that has no device for RDMA. Debian's library prepares for such devices wherever it is loaded, which
// takes each process 0.1 s of a processor and 0.2 s of sleep (doc/adr/0044).
#pragma once

#include <cstdio>
#include <string>

namespace near::ofi {

/// Whether the kernel knows a device for RDMA (InfiniBand, Omni-Path, EFA, iWARP). `root` is put before the path, for tests.
bool has_rdma_devices(const std::string& root = {});

/// Loads libfabric with libraries of our own in the place of those of PSM and PSM2, if they are installed in the folder `nearmpi` beside
/// this library: they say that there is no device. Otherwise, and if libfabric needs more of them, loads it as it is. Null if it
/// cannot be loaded; dlerror() says why.
void* load_without_rdma();

/// Stands for fopen() while libfabric starts: it looks through all symbols of the kernel, twice, for what devices for RDMA can do with
/// the memory of GPUs.
std::FILE* open_but_symbols(const char* path, const char* mode);

} // namespace near::ofi
