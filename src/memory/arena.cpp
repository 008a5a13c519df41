#include "memory/arena.h"

#include "base/checked.h"
#include "os/memory.h"

#include <algorithm>

namespace near::memory {

using base::Code;
using base::fail;
using base::Result;

void Arena::build(std::byte* at, std::uint64_t bytes, std::size_t page_bytes, bool reserved) {
  bytes_ = bytes;
  page_bytes_ = page_bytes;
  reserved_ = reserved;
  free_.clear();
  used_.clear();
  if (bytes != 0) free_.give(reinterpret_cast<std::uintptr_t>(at), bytes);
}

void take_pages_back(std::byte* address, std::uint64_t bytes) {
  (void)os::give_back(address, bytes);
  // Small blocks that are allocated here later must not be merged into huge pages.
  std::uint64_t huge = os::huge_page_size();
  if (huge != 0 && bytes >= huge) os::advise_huge_pages(address, bytes, os::HugePages::never);
}

Result Arena::reserve(std::size_t bytes, std::size_t alignment, void*& made) {
  std::uint64_t unit = std::max<std::uint64_t>(alignment, page_bytes_);
  if (!base::is_power_of_two(unit))
    return fail(Code::invalid, "an alignment of {} bytes is not a power of two", alignment);
  if (bytes > bytes_)
    return fail(Code::limit, "{} bytes are more than this process's part of the segment, {} MiB", bytes,
                bytes_ >> 20);
  std::uint64_t need = base::round_up(std::max<std::size_t>(bytes, 1), page_bytes_);
  std::uint64_t begin = 0;
  if (free_.take(need, unit, begin)) {
    used_.emplace(begin, need);
    made = reinterpret_cast<std::byte*>(begin);
    return {};
  }
  return fail(Code::limit,
              "this process's part of the segment ({} MiB of addresses) has no {} free bytes in a row",
              bytes_ >> 20, bytes);
}

Result Arena::allocate(std::size_t bytes, std::size_t alignment, int node, void*& made) {
  void* fresh = nullptr;
  NEAR_TRY(reserve(bytes, alignment, fresh));
  std::uint64_t need = base::round_up(std::max<std::size_t>(bytes, 1), page_bytes_);
  // With a mere preference, reserved pages would come from any node. For ordinary pages, if a policy is
  // forbidden, first touch by this bound process decides.
  Result placed;
  if (reserved_)
    placed = os::require_node(fresh, need, node);
  else
    (void)os::prefer_node(fresh, need, node);
  if (placed.ok()) placed = os::populate(fresh, need, !reserved_);
  if (!placed.ok()) {
    release(fresh);
    return placed;
  }
  made = fresh;
  return {};
}

bool Arena::release(void* address) {
  auto found = used_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == used_.end()) return false;
  auto [begin, length] = *found;
  used_.erase(found);
  if (reserved_)
    (void)os::give_back(address, length);
  else
    take_pages_back(static_cast<std::byte*>(address), length);
  free_.give(begin, length);
  return true;
}

} // namespace near::memory
