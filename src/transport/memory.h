// Memory of this process's own region that every peer can load and store.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace near::transport {

struct MemoryWish {
  std::size_t alignment = 64; ///< a power of two
  int node = -1;              ///< -1: the one that the caller runs on
  std::size_t page_bytes = 0; ///< 0: huge pages from one huge page of memory on, where there are any
};

/// Whole pages, zeroed, first touched here. nullptr when the arena is used up or the memory limit is reached
/// (failure_text says which). A wish for a node or for pages that cannot be met is no failure.
void* allocate_shareable(std::size_t bytes, const MemoryWish& wish);
/// False when the address was not made by allocate_shareable.
bool free_shareable(void* address);
/// How memory that was allocated just now falls short of the wish, by the kernel's word; "" when it does not.
std::string shortfall(const void* address, std::size_t bytes, const MemoryWish& wish);

} // namespace near::transport
