#include "transport/arena.h"

#include "base/checked.h"
#include "os/limits.h"
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

Result Arena::allocate(std::size_t bytes, std::size_t alignment, const Placing& placing, void*& made) {
  std::uint64_t unit = std::max<std::uint64_t>(alignment, page_bytes_);
  if (!base::is_power_of_two(unit))
    return fail(Code::invalid, "an alignment of {} bytes is no power of two", alignment);
  if (bytes > bytes_)
    return fail(Code::limit, "{} bytes are more than this process's part of the segment, {} MiB", bytes,
                bytes_ >> 20);
  std::uint64_t need = base::round_up(std::max<std::size_t>(bytes, 1), page_bytes_);
  std::uint64_t huge = os::huge_page_size();
  // The kernel merges whole huge pages only; what is left over at the end stays in small ones.
  std::uint64_t advised = placing.huge && !reserved_ && huge != 0 ? need & ~(huge - 1) : 0;
  if (advised != 0) unit = std::max(unit, huge);
  constexpr std::uint64_t worth_a_look = 1u << 20; // reading the limits costs more than a small allocation
  if (need >= worth_a_look && !reserved_) NEAR_TRY(os::check_memory(need));
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    auto [begin, length] = *at;
    auto absolute = reinterpret_cast<std::uintptr_t>(base_) + begin;
    std::uint64_t skip = base::round_up(absolute, unit) - absolute;
    if (length < skip || length - skip < need) continue;
    std::byte* address = base_ + begin + skip;
    // A policy that is forbidden here is no failure, since first touch by this bound process still decides;
    // but reserved pages would come from any node.
    if (reserved_)
      NEAR_TRY(os::insist_on_node(address, need, placing.node));
    else
      (void)os::prefer_node(address, need, placing.node);
    if (advised != 0) os::advise_huge_pages(address, advised, os::HugePages::wanted);
    Result populated = os::populate(address, need, !reserved_);
    if (!populated.ok()) {
      take_back(address, need, advised);
      return populated;
    }
    free_.erase(at);
    if (skip != 0) free_.emplace(begin, skip);
    if (length - skip > need) free_.emplace(begin + skip + need, length - skip - need);
    used_.emplace(begin + skip, Used{need, advised});
    made = address;
    return {};
  }
  return fail(Code::limit,
              "this process's part of the segment ({} MiB of addresses) has no {} free bytes in a row",
              bytes_ >> 20, bytes);
}

// Small blocks that come here later must not grow to huge pages.
void Arena::take_back(std::byte* address, std::uint64_t bytes, std::uint64_t advised) {
  (void)os::give_back(address, bytes);
  if (advised != 0) os::advise_huge_pages(address, advised, os::HugePages::never);
}

bool Arena::release(void* address) {
  auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(address) - base_);
  auto found = used_.find(offset);
  if (found == used_.end()) return false;
  auto [length, advised] = found->second;
  used_.erase(found);
  take_back(static_cast<std::byte*>(address), length, advised);
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
