// Allocates memory that every process of the job can load and store: pages of this process's arenas.
#pragma once

#include "segment/segment.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace near::memory {

using base::Result;

struct AllocationHints {
  std::size_t alignment = 64; ///< bytes; a power of two
  int node = -1;              ///< the NUMA node; -1: the one on which the caller runs
  std::size_t page_bytes = 0; ///< 0: huge pages, where available, if the memory fills at least one
};

/// Allocates at least `bytes` bytes in whole pages on the node of the hints. Pages that are allocated only on
/// first touch are bound to that node by a memory policy. The memory of a window is zeroed; other memory may
/// contain what this process wrote into it before freeing it. Returns nullptr, with the reason in
/// failure_text(), if the arena is full or the memory limit is reached, even after kept memory has been
/// returned to the kernel. A hint for a node or page size that cannot be met is not an error.
void* allocate_shareable(std::size_t bytes, const AllocationHints& hints,
                         segment::BlockUse use = segment::BlockUse::allocated);
/// Frees memory from allocate_shareable() or reserve_shareable(). Up to most_kept_bytes() of freed memory
/// keep their pages for later allocations. Returns false if `address` was not allocated for this use, or has
/// been freed already.
bool free_shareable(void* address, segment::BlockUse use = segment::BlockUse::allocated);
/// Allocates `count` pages on this processor's node, for the transport's own use, and sets `made`. Fails with
/// Code::limit if the arena is full, and with Code::no_memory if the memory limit is reached.
Result allocate_pages(std::size_t count, void*& made);
/// Whether addresses for such memory are so plentiful that some may serve speed alone. They are few if a limit (`ulimit -v`) has
/// made the segment small.
bool has_ample_space();

/// Reserves addresses for pages on this processor's node, for the transport's and the collectives' own use, without
/// allocating the pages, and sets `made`. Fails with Code::limit if the arena is full.
Result reserve_pages(std::size_t count, void*& made);
/// Allocates pages at reserved addresses. Fails with Code::no_memory if the memory limit is reached.
Result populate_pages(void* address, std::size_t bytes);
/// The limit in bytes of the freed memory that this process keeps: 64 MiB, or less, so that all ranks
/// together keep at most 1/32 of the machine's memory or of the strictest control group's limit.
std::uint64_t most_kept_bytes();
/// Describes how newly allocated memory falls short of the hints, according to the kernel; returns "" if it
/// meets them.
std::string shortfall(const void* address, std::size_t bytes, const AllocationHints& hints);

// Contiguous memory in one process's region, each page of which belongs to the process that places it.

/// Reserves page-aligned addresses for such memory, without allocating pages. Free them with
/// free_shareable(). Returns nullptr, with the reason in failure_text(), if the arena is full.
void* reserve_shareable(std::size_t bytes, const AllocationHints& hints);
/// Places whole pages at reserved addresses: they are zeroed, lie on the node of the hints, and belong to
/// this process from now on. Fails with Code::no_memory.
Result place_shareable(std::byte* address, std::size_t bytes, const AllocationHints& hints,
                       segment::BlockUse use);
/// Returns pages from place_shareable() to the kernel. Call it before the addresses are freed.
void decommit_shareable(std::byte* address, std::size_t bytes);

} // namespace near::memory
