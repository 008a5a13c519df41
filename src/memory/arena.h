// The arenas: the rest of this process's region, handed out in whole pages that this process owns and writes
// first. One is of ordinary pages, which the kernel may merge to huge ones; a second, where the administrator
// has reserved huge pages, of those.
#pragma once

#include "base/free_ranges.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace near::memory {

class Arena {
public:
  /// Where pages are wanted, and how.
  struct Placing {
    int node = 0;
    bool huge = false; ///< of ordinary pages: advise the kernel to merge them
  };

  /// `at`: on a page, nothing is touched yet. `page_bytes`: of a page of this memory. `reserved`: each page
  /// is one that the administrator has reserved.
  void build(std::byte* at, std::uint64_t bytes, std::size_t page_bytes, bool reserved);
  bool empty() const { return bytes_ == 0; }
  /// Whole pages on this node, populated and zeroed; ordinary ones come from other nodes when it is full.
  /// Code::limit when the address range is used up, Code::no_memory when memory, or the node's reserved
  /// pages, are.
  base::Result allocate(std::size_t bytes, std::size_t alignment, int node, void*& made);
  /// Addresses for whole pages, which nobody has touched. Code::limit when there are none in a row.
  base::Result reserve(std::size_t bytes, std::size_t alignment, void*& made);
  /// Returns the pages to the system; false when `address` did not come from one of these.
  bool release(void* address);

private:
  std::uint64_t bytes_ = 0;
  std::size_t page_bytes_ = 0;
  bool reserved_ = false;
  base::FreeRanges free_;                       ///< of addresses
  std::map<std::uint64_t, std::uint64_t> used_; ///< address -> bytes
};

/// Returns pages that this process has placed to the system.
void take_pages_back(std::byte* address, std::uint64_t bytes);

} // namespace near::memory
