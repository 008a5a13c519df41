// Memory that every process of the job can load and store: pages of this process's arenas.
#pragma once

#include "segment/segment.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace near::memory {

using base::Result;

struct AllocationHints {
  std::size_t alignment = 64; ///< a power of two
  int node = -1;              ///< -1: the one that the caller runs on
  std::size_t page_bytes = 0; ///< 0: huge pages from one huge page of memory on, where there are any
};

/// Allocates whole pages on the node that the hints name; pages that are allocated on first touch get
/// there by policy. A window's memory is zeroed; other memory may hold what this process wrote before it
/// freed it. Returns nullptr if the arena is used up or the memory limit is reached, even after kept
/// memory has been given back; failure_text() says which. It is not a failure if a hint for a node or a
/// page size cannot be met.
void* allocate_shareable(std::size_t bytes, const AllocationHints& hints,
                         segment::BlockUse use = segment::BlockUse::allocated);
/// Frees such memory, and keeps its pages for the next allocation, within most_kept_bytes(). False if the
/// address did not come from allocate_shareable() for this use, or is free already.
bool free_shareable(void* address, segment::BlockUse use = segment::BlockUse::allocated);
/// Pages on this processor's node that the transport itself needs. Fails as above.
Result allocate_pages(std::size_t count, void*& made);
/// How much freed memory this process keeps at most: 64 MiB, but with all ranks together no more than a 32nd
/// of the machine's memory or of the strictest control group's limit.
std::uint64_t most_kept_bytes();
/// How memory that was allocated just now falls short of the hints, by the kernel's word; "" when
/// it does not.
std::string shortfall(const void* address, std::size_t bytes, const AllocationHints& hints);

// Memory that lies in a row in one process's region, and of which each page belongs to the process that
// places it.

/// Addresses for it, on a page and untouched; free_shareable ends them. nullptr as above.
void* reserve_shareable(std::size_t bytes, const AllocationHints& hints);
/// Makes whole pages of such addresses this process's own: zeroed, on its node. Code::no_memory.
Result place_shareable(segment::Offset begin, std::size_t bytes, const AllocationHints& hints,
                       segment::BlockUse use);
/// Gives them back, before their addresses end.
void decommit_shareable(segment::Offset begin, std::size_t bytes);

} // namespace near::memory
