#include "memory/allocate.h"

#include "base/checked.h"
#include "base/knob.h"
#include "memory/space.h"
#include "os/limits.h"
#include "os/memory.h"
#include "os/pages.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace near::memory {

namespace {

/// Returns true if the memory should consist of huge pages: they were requested, or they are enabled and the
/// memory fills at least one.
bool wants_huge(std::size_t bytes, const AllocationHints& hints) {
  std::size_t huge = os::huge_page_size();
  if (huge == 0) return false;
  if (hints.page_bytes != 0) return hints.page_bytes == huge;
  return base::knobs().huge_pages.number != 0 && bytes >= huge;
}

/// Reserved pages are allocated whole. Unless they were requested, at most a quarter of the memory may be
/// wasted at the end.
bool fits_reserved(std::size_t bytes, const AllocationHints& hints) {
  std::size_t huge = os::huge_page_size();
  return hints.page_bytes != 0 || bytes >= 4 * huge || bytes % huge == 0;
}

Arena::Placing placing_of(std::size_t bytes, const AllocationHints& hints) {
  return {hints.node >= 0 ? hints.node : os::current_node(), wants_huge(bytes, hints)};
}

/// Smaller allocations are not checked against the limits, because reading these would cost more.
constexpr std::uint64_t worth_a_look = 1u << 20;

/// Returns true if the caller checks the pages right after the allocation (shortfall()), so that they must
/// exist by then.
bool looks_at_pages(const AllocationHints& hints) { return hints.node >= 0 || hints.page_bytes != 0; }

/// Returns true if memory is only bound to its node now, and its pages are allocated on first touch. Returns
/// false if a page that the kernel cannot supply would end the process, and for huge pages if the kernel may
/// supply them for shared memory.
bool may_come_later(std::size_t bytes, const AllocationHints& hints, const Arena::Placing& placing) {
  constexpr std::size_t large = 16u << 20;
  if (bytes < large || looks_at_pages(hints)) return false;
  static const bool refuses = os::refuses_overcommitment();
  if (refuses) return false;
  if (!placing.huge) return true;
  std::string policy = os::shared_huge_pages_policy();
  return policy.empty() || policy == "never" || policy == "deny";
}

struct Promised {
  std::uint64_t bytes = 0;   ///< memory whose pages are allocated on first touch
  std::uint64_t in_core = 0; ///< the part of it whose pages have been allocated
};

/// Sums up the promised memory of all processes of the job. Determines `in_core` only if `count`, because
/// that takes a while.
Promised promised_to_all(bool count) {
  const Space& self = space();
  Promised sum;
  for (std::uint32_t row = 0; row < self.segment.rows(); ++row) {
    // Reading another process's control page costs a page of page tables, so it is done only if necessary.
    if (self.segment.entry(row).promises.load_relaxed() == 0) continue;
    const auto& control = self.segment.control(row);
    // SYNC: block-listed. Acquire: all blocks that the count includes have been written.
    const std::uint32_t listed = std::min(control.block_count.load_acquire(), segment::most_blocks);
    for (std::uint32_t i = 0; i < listed; ++i) {
      const auto& block = self.segment.at<segment::Block>(control.blocks)[i];
      const std::uint64_t bytes = block.bytes.load_relaxed(), promised = block.promised.load_relaxed();
      const segment::Offset begin = block.begin.load_relaxed();
      // While an entry is being reused, its words may belong to different blocks.
      if (promised == 0 || bytes != promised || begin > self.segment.bytes() ||
          bytes > self.segment.bytes() - begin)
        continue;
      sum.bytes += bytes;
      if (count) sum.in_core += os::bytes_in_core(self.segment.at<std::byte>(begin), bytes);
    }
  }
  return sum;
}

/// Fails if there is too little memory for `bytes` in addition to all promised memory. `listed`: the list of
/// promised memory contains them already.
Result check_free_memory(std::uint64_t bytes, bool listed) {
  if (bytes < worth_a_look) return {};
  // SYNC: block-listed. If two processes list their blocks and then check, at least one of them sees both
  // blocks.
  base::Hardware::fence_store_load();
  auto open = [&](const Promised& all) {
    return std::max(bytes, all.bytes - std::min(all.bytes, all.in_core) + (listed ? 0 : bytes));
  };
  Promised all = promised_to_all(false);
  Result fits = os::check_memory(open(all));
  if (fits.ok() || open(all) == bytes) return fits;
  all = promised_to_all(true);
  fits = os::check_memory(open(all));
  if (fits.ok()) return fits;
  return base::fail(base::Code::no_memory,
                    "{}; {} MiB of that are promised to memory of the job that nobody has touched yet",
                    std::string(base::failure_text()), (open(all) - bytes) >> 20);
}

/// Frees the block that has been kept longest: returns its pages to the kernel. Returns false if nothing is
/// kept.
bool give_back_oldest() {
  Space& self = space();
  KeptBlocks::Block block;
  if (!self.kept.take_oldest(block)) return false;
  self.blocks.remove(self.segment.offset_of(block.address));
  self.ordinary_arena().release(block.address);
  return true;
}

/// Lists a block as this process's. If the list is full, kept blocks make way for the new one. Returns false
/// if the list is full of blocks in use.
bool list_block(segment::Offset begin, std::uint64_t bytes, int node, segment::BlockUse use,
                std::uint64_t promised = 0) {
  Space& self = space();
  while (self.blocks.is_full() && give_back_oldest()) {}
  if (promised != 0) self.segment.entry(self.row).promises.store_relaxed(1);
  return self.blocks.add(begin, bytes, node, use, promised);
}

/// Lists whole ordinary pages of any arena as this process's, and places them, zeroed: on its node if that
/// has enough free memory, and in huge pages where those fit and are wanted. Sets `promised` if the pages
/// will be allocated on first touch.
Result list_and_place(std::byte* address, std::uint64_t bytes, const AllocationHints& hints,
                      segment::BlockUse use, bool& promised) {
  Space& self = space();
  const segment::Offset begin = self.segment.offset_of(address);
  const Arena::Placing placing = placing_of(bytes, hints);
  promised = may_come_later(bytes, hints, placing);
  // The block is listed before its first page is allocated and until its last page is gone: a tool that found
  // an unlisted page would attribute it to the process in whose region it lies.
  promised = list_block(begin, bytes, hints.node, use, promised ? bytes : 0) && promised;
  Result placed = check_free_memory(bytes, promised);
  if (placed.ok()) {
    // It is not an error if policies are forbidden, since first touch by this bound process still decides.
    const bool bound = os::prefer_node(address, bytes, placing.node).ok();
    std::uint64_t huge = os::huge_page_size();
    if (placing.huge && huge != 0) {
      // The kernel merges only whole huge pages; the rest at both ends remains in small ones.
      auto at = reinterpret_cast<std::uintptr_t>(address);
      std::uint64_t skip = base::round_up(at, huge) - at;
      if (skip < bytes && bytes - skip >= huge)
        os::advise_huge_pages(address + skip, (bytes - skip) & ~(huge - 1), os::HugePages::wanted);
    }
    promised = promised && bound;
    if (!promised) placed = os::populate(address, bytes);
    if (!promised) self.blocks.populated(begin);
  }
  if (placed.ok()) return placed;
  take_pages_back(address, bytes);
  self.blocks.remove(begin);
  return placed;
}

/// Calls `attempt`. If it fails, returns all kept memory to the kernel and calls it once more.
template <class Attempt>
Result retry_without_kept(Attempt&& attempt) {
  Result result = attempt();
  if (result.ok() || !give_back_oldest()) return result;
  while (give_back_oldest()) {}
  return attempt();
}

/// Takes kept memory that meets the hints; returns nullptr if there is none.
void* take_kept(std::size_t bytes, const AllocationHints& hints, const Arena::Placing& placing,
                segment::BlockUse use) {
  Space& self = space();
  std::uint64_t page = os::page_size(), whole = base::round_up(std::max<std::size_t>(bytes, 1), page);
  KeptBlocks::Block block;
  if (whole < bytes || !base::is_power_of_two(std::max<std::uint64_t>(hints.alignment, 1)) ||
      !self.kept.take(whole, std::max<std::size_t>(hints.alignment, 1), placing, !looks_at_pages(hints),
                      block))
    return nullptr;
  self.blocks.change(self.segment.offset_of(block.address), hints.node, use);
  if (use != segment::BlockUse::window) return block.address;
  if (block.promised)
    (void)os::give_back(block.address, block.bytes);
  else
    std::memset(block.address, 0, block.bytes);
  return block.address;
}

/// Returns true if a block's pages are on the intended node. If that node was full, the kernel took pages of
/// other nodes, and such pages are not worth keeping. Asks the kernel once per block, and only on machines
/// with several nodes.
bool is_in_place(KeptBlocks::Block& block) {
  static const bool several = os::has_node(1);
  if (block.in_place || !several) return true;
  std::vector<std::uint64_t> pages;
  auto begin = reinterpret_cast<std::uintptr_t>(block.address);
  for (std::uintptr_t at = begin; at < begin + block.bytes; at += os::page_size()) pages.push_back(at);
  std::vector<int> nodes;
  if (!os::nodes_of_pages(0, pages, nodes).ok()) return false;
  block.in_place = std::all_of(nodes.begin(), nodes.end(),
                               [&](int node) { return node == block.placing.node || node == os::no_page; });
  return block.in_place;
}

/// Allocates reserved huge pages if they are wanted and enough of them are free; otherwise returns nullptr.
void* take_reserved(std::size_t bytes, const AllocationHints& hints, const Arena::Placing& placing,
                    segment::BlockUse use) {
  Space& self = space();
  const std::uint64_t huge = os::huge_page_size();
  void* made = nullptr;
  // A failed attempt would deprive other processes of the free pages for a moment.
  if (!placing.huge || self.reserved_arena.empty() || !fits_reserved(bytes, hints) ||
      os::reserved_huge_pages() < (bytes - 1) / huge + 1 ||
      !self.reserved_arena.allocate(bytes, hints.alignment, placing.node, made).ok())
    return nullptr;
  // Reserved pages are scarce, so they are not kept after they are freed.
  list_block(self.segment.offset_of(made), base::round_up(bytes, huge), hints.node, use);
  return made;
}

/// Allocates new ordinary pages; returns nullptr if that is impossible.
void* make_fresh(std::size_t bytes, const AllocationHints& hints, const Arena::Placing& placing,
                 segment::BlockUse use) {
  Space& self = space();
  void* made = nullptr;
  const std::uint64_t huge = os::huge_page_size(), page = os::page_size();
  const std::size_t alignment =
      placing.huge && bytes >= huge ? std::max<std::size_t>(hints.alignment, huge) : hints.alignment;
  const std::uint64_t whole = base::round_up(std::max<std::size_t>(bytes, 1), page);
  bool promised = false;
  Result placed = retry_without_kept([&]() -> Result {
    NEAR_TRY(self.ordinary_arena().reserve(bytes, alignment, made));
    Result result = list_and_place(static_cast<std::byte*>(made), whole, hints, use, promised);
    if (!result.ok()) self.ordinary_arena().release(made);
    return result;
  });
  if (!placed.ok()) return nullptr;
  self.kept.handed_out(
      {.address = static_cast<std::byte*>(made), .bytes = whole, .placing = placing, .promised = promised});
  return made;
}

} // namespace

std::uint64_t most_kept_bytes() {
  constexpr std::uint64_t most = 64u << 20, share = 32;
  std::uint64_t memory = os::physical_memory();
  const os::Limits limits = os::read_limits();
  if (const os::MemoryLimit* least = limits.least_memory()) memory = std::min(memory, least->bytes);
  return std::min(most, memory / share / std::max(space().job_size, 1u));
}

void* allocate_shareable(std::size_t bytes, const AllocationHints& hints, segment::BlockUse use) {
  const Arena::Placing placing = placing_of(bytes, hints);
  // Kept memory is the cheapest, but consists of ordinary pages, so a hint for huge pages tries reserved ones
  // first.
  const bool reserved_first = hints.page_bytes != 0;
  void* made = reserved_first ? take_reserved(bytes, hints, placing, use) : nullptr;
  if (made == nullptr) made = take_kept(bytes, hints, placing, use);
  if (made == nullptr && !reserved_first) made = take_reserved(bytes, hints, placing, use);
  return made != nullptr ? made : make_fresh(bytes, hints, placing, use);
}

bool free_shareable(void* address, segment::BlockUse use) {
  Space& self = space();
  if (!self.segment.contains(address)) return false;
  segment::Offset begin = self.segment.offset_of(address);
  auto* at = static_cast<std::byte*>(address);
  if (self.blocks.is_not(begin, use) || self.kept.has(at)) return false;
  KeptBlocks::Block block;
  if (!self.kept.has_bound()) self.kept.set_bound(most_kept_bytes()); // reads the limits, so only when needed
  if (self.kept.returned(at, block) && self.kept.admits(block.bytes) && is_in_place(block)) {
    self.blocks.change(begin, block.placing.node, segment::BlockUse::kept);
    self.kept.keep(block);
    while (self.kept.over_full()) give_back_oldest();
    return true;
  }
  // Remove it from the list first, so that no tool reads pages that no longer exist.
  self.blocks.remove(begin);
  return self.arena.release(address) || (!self.far_arena.empty() && self.far_arena.release(address)) ||
         (!self.reserved_arena.empty() && self.reserved_arena.release(address));
}

Result allocate_pages(std::size_t count, void*& made) {
  return retry_without_kept([&] {
    return space().arena.allocate(count * os::page_size(), os::page_size(), os::current_node(), made);
  });
}

Result reserve_pages(std::size_t count, void*& made) {
  const std::size_t bytes = count * os::page_size();
  NEAR_TRY(space().arena.reserve(bytes, os::page_size(), made));
  (void)os::prefer_node(made, bytes, os::current_node()); // if forbidden, first touch decides
  return {};
}

Result populate_pages(void* address, std::size_t bytes) {
  return retry_without_kept([&] { return os::populate(address, bytes); });
}

void* reserve_shareable(std::size_t bytes, const AllocationHints& hints) {
  void* made = nullptr;
  std::size_t alignment =
      wants_huge(bytes, hints) ? std::max(hints.alignment, os::huge_page_size()) : hints.alignment;
  return retry_without_kept([&] { return space().ordinary_arena().reserve(bytes, alignment, made); }).ok()
             ? made
             : nullptr;
}

Result place_shareable(std::byte* address, std::size_t bytes, const AllocationHints& hints,
                       segment::BlockUse use) {
  if (bytes == 0) return {};
  // A huge page across the border would belong to two processes. For its own region, a process has given this
  // advice already.
  os::advise_huge_pages(address, bytes, os::HugePages::never);
  bool promised = false;
  return retry_without_kept([&] { return list_and_place(address, bytes, hints, use, promised); });
}

void decommit_shareable(std::byte* address, std::size_t bytes) {
  if (bytes == 0) return;
  take_pages_back(address, bytes);
  space().blocks.remove(space().segment.offset_of(address));
}

bool has_ample_space() {
  constexpr std::uint64_t ample = 64 << 20;
  return space().ordinary_arena().bytes() >= ample;
}

std::string shortfall(const void* address, std::size_t bytes, const AllocationHints& hints) {
  Space& self = space();
  auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (hints.node >= 0) {
    std::vector<std::uint64_t> pages;
    for (std::uintptr_t at = begin; at < begin + bytes; at += os::page_size()) pages.push_back(at);
    std::vector<int> nodes;
    if (!os::nodes_of_pages(0, pages, nodes).ok()) return "the kernel does not tell where its pages are";
    std::map<int, std::size_t> elsewhere;
    for (int node : nodes)
      if (node != hints.node) ++elsewhere[node];
    for (auto [node, count] : elsewhere)
      return base::format(
          "{} of its {} pages are on node {}: node {} had no room for them, or this process may not "
          "use it",
          count, pages.size(), node, hints.node);
  }
  std::size_t huge = os::huge_page_size();
  if (hints.page_bytes <= os::page_size() || hints.page_bytes != huge) return {};
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

} // namespace near::memory
