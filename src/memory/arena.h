// Arenas: the ranges of addresses from which this process allocates whole pages of the segment. It owns these
// pages and is the first to write them. An arena consists of ordinary pages, which the kernel may merge into
// huge ones, or of huge pages that the administrator has reserved.
#pragma once

#include "base/free_ranges.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace near::memory {

class Arena {
public:
  /// The requested placement of pages.
  struct Placing {
    int node = 0;      ///< the NUMA node
    bool huge = false; ///< for ordinary pages: advise the kernel to merge them
  };

  /// Manages `bytes` bytes of untouched addresses from `at`, which is page-aligned. `page_bytes` is the size
  /// of a page there. `reserved`: the pages are huge pages that the administrator has reserved.
  void build(std::byte* at, std::uint64_t bytes, std::size_t page_bytes, bool reserved);
  bool empty() const { return bytes_ == 0; }
  std::uint64_t bytes() const { return bytes_; }
  /// Allocates whole pages on `node`, populated and zeroed, and sets `made`. If the node is full, ordinary
  /// pages come from other nodes. Fails with Code::invalid if `alignment` is not a power of two, with
  /// Code::limit if no free range of addresses is long enough, and with Code::no_memory if memory, or the
  /// node's reserved pages, are used up.
  base::Result allocate(std::size_t bytes, std::size_t alignment, int node, void*& made);
  /// Reserves addresses for whole pages without touching them, and sets `made`. Fails with Code::invalid if
  /// `alignment` is not a power of two, and with Code::limit if no free range of addresses is long enough.
  base::Result reserve(std::size_t bytes, std::size_t alignment, void*& made);
  /// Frees what allocate() or reserve() returned, and returns its pages to the kernel. Returns false if
  /// `address` did not come from this arena.
  bool release(void* address);

private:
  std::uint64_t bytes_ = 0;
  std::size_t page_bytes_ = 0;
  bool reserved_ = false;
  base::FreeRanges free_;                       ///< addresses that are not in use
  std::map<std::uint64_t, std::uint64_t> used_; ///< address -> bytes
};

/// Returns pages of this process to the kernel; their addresses remain usable.
void take_pages_back(std::byte* address, std::uint64_t bytes);

} // namespace near::memory
