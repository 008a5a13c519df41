#include "transport/arena.h"

#include "base/checked.h"
#include "os/memory.h"

#include <algorithm>

namespace near::transport {

using base::Code;
using base::fail;
using base::Result;

void Arena::build(std::byte* at, std::uint64_t bytes, std::size_t page_bytes, bool reserved) {
  base_ = at;
  bytes_ = bytes;
  page_bytes_ = page_bytes;
  reserved_ = reserved;
  free_.clear();
  used_.clear();
  free_.emplace(0, bytes);
}

void take_pages_back(std::byte* address, std::uint64_t bytes) {
  (void)os::give_back(address, bytes);
  // Small blocks that come here later must not grow to huge pages.
  std::uint64_t huge = os::huge_page_size();
  if (huge != 0 && bytes >= huge) os::advise_huge_pages(address, bytes, os::HugePages::never);
}

Result Arena::reserve(std::size_t bytes, std::size_t alignment, void*& made) {
  std::uint64_t unit = std::max<std::uint64_t>(alignment, page_bytes_);
  if (!base::is_power_of_two(unit))
    return fail(Code::invalid, "an alignment of {} bytes is no power of two", alignment);
  if (bytes > bytes_)
    return fail(Code::limit, "{} bytes are more than this process's part of the segment, {} MiB", bytes,
                bytes_ >> 20);
  std::uint64_t need = base::round_up(std::max<std::size_t>(bytes, 1), page_bytes_);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    auto [begin, length] = *at;
    auto absolute = reinterpret_cast<std::uintptr_t>(base_) + begin;
    std::uint64_t skip = base::round_up(absolute, unit) - absolute;
    if (length < skip || length - skip < need) continue;
    free_.erase(at);
    if (skip != 0) free_.emplace(begin, skip);
    if (length - skip > need) free_.emplace(begin + skip + need, length - skip - need);
    used_.emplace(begin + skip, need);
    made = base_ + begin + skip;
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
  // Without insistence reserved pages would come from any node. For ordinary ones first touch by this bound
  // process decides where a policy is forbidden.
  Result placed;
  if (reserved_)
    placed = os::insist_on_node(fresh, need, node);
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
  auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(address) - base_);
  auto found = used_.find(offset);
  if (found == used_.end()) return false;
  std::uint64_t length = found->second;
  used_.erase(found);
  if (reserved_)
    (void)os::give_back(address, length);
  else
    take_pages_back(static_cast<std::byte*>(address), length);
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && offset + length == after->first) {
    length += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += length;
      return true;
    }
  }
  free_.emplace(offset, length);
  return true;
}

} // namespace near::transport
