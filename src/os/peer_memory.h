// Cross-memory attach: one process accesses another's memory through the kernel, with a single copy.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace near::os {

using base::Result;

/// A run of bytes in this process or in the peer; laid out like the kernel's iovec.
struct Run {
  void* address;
  std::size_t bytes;
};

/// Lets descendants of `pid` access this process's memory where Yama restricts access to ancestors. Has no
/// effect on a kernel without Yama, which has no such restriction.
void admit_descendants_of(std::int32_t pid);

/// Whether other processes can read this process's memory there, judging by the first and the last of `bytes` bytes: the
/// kernel reads neither device memory nor unmapped memory for another process.
bool is_readable_by_peers(const void* address, std::size_t bytes);

/// Copies consecutive bytes of process `pid`, from `address` on, into the runs. `copied` is less than
/// requested if the rest is not mapped in one of the processes. Fails if nothing can be copied; the message
/// names errno.
Result read_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> into, std::size_t& copied);
/// Like the other read_peer(), from several runs of the peer's memory in turn. At most 1024 runs on each
/// side.
Result read_peer(std::int32_t pid, std::span<const Run> from, std::span<const Run> into, std::size_t& copied);
/// Copies from the runs to consecutive bytes of process `pid`, from `address` on; the counterpart of
/// read_peer().
Result write_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> from, std::size_t& copied);
Result write_peer(std::int32_t pid, std::span<const Run> into, std::span<const Run> from,
                  std::size_t& copied);

} // namespace near::os
