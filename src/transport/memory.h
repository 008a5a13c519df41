// Memory that processes share: of this process's own region, which every peer can load and store, and what
// the kernel copies out of or into another's private memory.
#pragma once

#include "os/peer_memory.h"
#include "segment/segment.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace near::transport {

using base::Result;
struct Peer;

struct MemoryWish {
  std::size_t alignment = 64; ///< a power of two
  int node = -1;              ///< -1: the one that the caller runs on
  std::size_t page_bytes = 0; ///< 0: huge pages from one huge page of memory on, where there are any
};

/// Whole pages on the wished node, by policy if they are touched only later. Those of windows are zeroed;
/// others may be ones that this process has had before. nullptr when the arena is used up or the memory limit
/// is reached (failure_text says which), also without what is kept of freed memory. A wish for a node or for
/// pages that cannot be met is no failure.
void* allocate_shareable(std::size_t bytes, const MemoryWish& wish,
                         segment::BlockUse use = segment::BlockUse::allocated);
/// Keeps the pages for the next such allocation, within most_kept_bytes(). False when the address was not
/// made by allocate_shareable, or for another use, or is free already.
bool free_shareable(void* address, segment::BlockUse use = segment::BlockUse::allocated);
/// A page on this processor's node that the transport itself needs. Fails as above.
Result allocate_page(void*& page);
/// So much freed memory this process keeps: 64 MiB, and all ranks together at most a 32nd of the machine's
/// memory, or of the strictest control group's.
std::uint64_t most_kept_bytes();
/// How memory that was allocated just now falls short of the wish, by the kernel's word; "" when it does not.
std::string shortfall(const void* address, std::size_t bytes, const MemoryWish& wish);

// Memory that lies in a row in one process's region, and of which each page belongs to the process that
// places it.

/// Addresses for it, on a page and untouched; free_shareable ends them. nullptr as above.
void* reserve_shareable(std::size_t bytes, const MemoryWish& wish);
/// Makes whole pages of such addresses this process's own: zeroed, on its node. Code::no_memory.
Result place_shareable(segment::Offset begin, std::size_t bytes, const MemoryWish& wish,
                       segment::BlockUse use);
/// Gives them back, before their addresses end.
void unplace_shareable(segment::Offset begin, std::size_t bytes);

/// Whether the kernel copies from and to the private memory of another process, by trying both.
bool reaches_memory_of(Peer& peer);
/// Copies from runs of the other's memory into runs of this process's, or the other way; both sides have
/// equally many bytes, in at most 1024 runs. False when not all of it is mapped there: then any part may have
/// been copied. What `theirs` and `mine` contain is undefined afterwards.
bool copy_from_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);
bool copy_to_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);

} // namespace near::transport
