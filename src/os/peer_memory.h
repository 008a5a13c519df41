// Cross-memory attach: one process reads another's memory through the kernel, in one copy.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace near::os {

using base::Result;

/// A run of bytes in this process, or in another that is named with it; laid out as the kernel's iovec.
struct Run {
  void* address;
  std::size_t bytes;
};

/// Lets descendants of `pid` attach to this process where Yama restricts that to ancestors. A kernel without
/// Yama needs nothing and the call does nothing.
void admit_descendants_of(std::int32_t pid);

/// Copies from process `pid`, consecutively from `address`, into the runs. `copied` may be less than asked:
/// the rest is not mapped there or here. Fails when nothing can be copied; the text names the errno.
Result read_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> into, std::size_t& copied);
/// The same from several runs of the other's memory, one behind the other. At most 1024 runs on either side.
Result read_peer(std::int32_t pid, std::span<const Run> from, std::span<const Run> into, std::size_t& copied);
/// The other way: copies from the runs to process `pid`, consecutively from `address`.
Result write_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> from, std::size_t& copied);
Result write_peer(std::int32_t pid, std::span<const Run> into, std::span<const Run> from,
                  std::size_t& copied);

} // namespace near::os
