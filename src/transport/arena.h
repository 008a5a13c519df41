// The arena: the rest of this process's region, handed out in whole pages that this process owns and writes
// first.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace near::transport {

class Arena {
public:
  /// `at`: page-aligned; nothing is touched yet.
  void build(std::byte* at, std::uint64_t bytes, int node);
  /// Whole pages, populated on the owner's node and zeroed; Code::limit when the address range is used up,
  /// Code::no_memory when the machine's or the cgroup's memory is.
  base::Result allocate(std::size_t bytes, std::size_t alignment, void*& made);
  /// Returns the pages to the system; false when `address` did not come from allocate.
  bool release(void* address);

private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  int node_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_; ///< offset -> bytes, neighbours merged
  std::map<std::uint64_t, std::uint64_t> used_;
};

} // namespace near::transport
