#include "transport/memory.h"

#include "base/checked.h"
#include "base/knob.h"
#include "os/memory.h"
#include "os/pages.h"
#include "transport/engine.h"

#include <algorithm>
#include <map>
#include <vector>

namespace near::transport {

namespace {

/// Whether memory should come in huge pages: those that were asked for, or where none is larger than the
/// memory.
bool wants_huge(std::size_t bytes, const MemoryWish& wish) {
  std::size_t huge = os::huge_page_size();
  if (huge == 0) return false;
  if (wish.page_bytes != 0) return wish.page_bytes == huge;
  return base::knobs().huge_pages.number != 0 && bytes >= huge;
}

/// Reserved pages are whole ones: unless they were asked for, what is wasted at the end is a quarter at most.
bool fits_reserved(std::size_t bytes, const MemoryWish& wish) {
  std::size_t huge = os::huge_page_size();
  return wish.page_bytes != 0 || bytes >= 4 * huge || bytes % huge == 0;
}

Arena::Placing placing_of(std::size_t bytes, const MemoryWish& wish) {
  return {wish.node >= 0 ? wish.node : os::current_node(), wants_huge(bytes, wish)};
}

} // namespace

void* allocate_shareable(std::size_t bytes, const MemoryWish& wish, segment::BlockUse use) {
  Engine& self = engine();
  Arena::Placing placing = placing_of(bytes, wish);
  void* made = nullptr;
  // To try without enough of them would take them from others for a moment.
  bool reserved = placing.huge && !self.reserved_arena.empty() && fits_reserved(bytes, wish) &&
                  os::reserved_huge_pages() >= (bytes - 1) / os::huge_page_size() + 1 &&
                  self.reserved_arena.allocate(bytes, wish.alignment, placing, made).ok();
  if (!reserved && !self.arena.allocate(bytes, wish.alignment, placing, made).ok()) return nullptr;
  std::uint64_t page = reserved ? os::huge_page_size() : os::page_size();
  self.blocks.add(self.segment.offset_of(made), base::round_up(bytes, page), wish.node, use);
  return made;
}

bool free_shareable(void* address, segment::BlockUse use) {
  Engine& self = engine();
  if (!self.segment.contains(address) || self.blocks.is_not(self.segment.offset_of(address), use))
    return false;
  // The list first: nobody should look for pages that are gone.
  self.blocks.remove(self.segment.offset_of(address));
  return self.arena.release(address) ||
         (!self.reserved_arena.empty() && self.reserved_arena.release(address));
}

void* reserve_shareable(std::size_t bytes, const MemoryWish& wish) {
  void* made = nullptr;
  std::size_t alignment =
      wants_huge(bytes, wish) ? std::max(wish.alignment, os::huge_page_size()) : wish.alignment;
  return engine().arena.reserve(bytes, alignment, made).ok() ? made : nullptr;
}

Result place_shareable(segment::Offset begin, std::size_t bytes, const MemoryWish& wish,
                       segment::BlockUse use) {
  if (bytes == 0) return {};
  Engine& self = engine();
  auto* address = self.segment.at<std::byte>(begin);
  // A huge page across the border would be of two processes. In its own region a process has said so before.
  os::advise_huge_pages(address, bytes, os::HugePages::never);
  // Listed first, and to the end: a tool that met a page of it without the list would take it for the page of
  // whose region this is.
  self.blocks.add(begin, bytes, wish.node, use);
  Result placed = place_pages(address, bytes, placing_of(bytes, wish));
  if (!placed.ok()) {
    take_pages_back(address, bytes);
    self.blocks.remove(begin);
  }
  return placed;
}

void unplace_shareable(segment::Offset begin, std::size_t bytes) {
  if (bytes == 0) return;
  take_pages_back(engine().segment.at<std::byte>(begin), bytes);
  engine().blocks.remove(begin);
}

std::string shortfall(const void* address, std::size_t bytes, const MemoryWish& wish) {
  Engine& self = engine();
  auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (wish.node >= 0) {
    std::vector<std::uint64_t> pages;
    for (std::uintptr_t at = begin; at < begin + bytes; at += os::page_size()) pages.push_back(at);
    std::vector<int> nodes;
    if (!os::nodes_of_pages(0, pages, nodes).ok()) return "the kernel does not tell where its pages are";
    std::map<int, std::size_t> elsewhere;
    for (int node : nodes)
      if (node != wish.node) ++elsewhere[node];
    for (auto [node, count] : elsewhere)
      return base::format(
          "{} of its {} pages are on node {}: node {} had no room for them, or this process may not "
          "use it",
          count, pages.size(), node, wish.node);
  }
  std::size_t huge = os::huge_page_size();
  if (wish.page_bytes <= os::page_size() || wish.page_bytes != huge) return {};
  if (self.segment.offset_of(address) >= self.segment.huge_region(0)) return {};
  if (bytes < huge)
    return base::format("{} bytes are too few for a huge page of {}, but a reserved one", bytes, huge);
  std::uint64_t whole = bytes & ~(huge - 1), found = os::bytes_in_huge_pages(address, whole);
  if (found >= whole) return {};
  std::string policy = os::shared_huge_pages_policy();
  return base::format(
      "{} of {} KiB are in huge pages: the administrator has reserved too few ({} are free), and "
      "/sys/kernel/mm/transparent_hugepage/shmem_enabled is {}",
      found >> 10, whole >> 10, os::reserved_huge_pages(), policy.empty() ? "not there" : policy);
}

} // namespace near::transport
