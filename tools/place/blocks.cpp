#include "place/blocks.h"

#include "os/memory.h"
#include "segment/activity.h"

#include <algorithm>

namespace near::place {
namespace {

constexpr const char *window_role = "window", *kept_role = "kept";

/// Adds the blocks that a rank lists as its own. The list was written by another process, so each value is
/// read once and checked: blocks outside the rank's arenas (for windows, outside any arena), or not made of
/// whole pages, are omitted.
void add_listed_blocks(const segment::Segment& segment, std::uint32_t rank, std::vector<Listed>& found) {
  const auto& control = segment.control(rank);
  const Offset region = segment.region(rank), stride = segment.stride();
  const Offset list = base::load_once(control.blocks), arena = base::load_once(control.arena);
  // SYNC: block-listed. Acquire: this many entries were written before. Reading a page that does not exist
  // would allocate it.
  std::uint32_t count = std::min(control.block_count.load_acquire(), segment::most_blocks);
  if (list % alignof(segment::Block) != 0 || list < region || list > arena || arena > region + stride ||
      arena - list < count * sizeof(segment::Block))
    return;
  auto within = [](Offset begin, std::uint64_t bytes, Offset first, Offset behind, std::uint64_t page) {
    return begin >= first && begin < behind && bytes != 0 && bytes <= behind - begin && begin % page == 0 &&
           bytes % page == 0;
  };
  const std::uint64_t far_stride = segment.far_stride();
  const Offset far = segment.far_region(0);
  auto within_arena = [&](Offset begin, std::uint64_t bytes, std::uint32_t whose) {
    if (!segment::has_region(segment, whose)) return false;
    if (begin >= far)
      return far_stride != 0 &&
             within(begin, bytes, segment.far_region(whose), segment.far_region(whose + 1), os::page_size());
    Offset its = segment.region(whose);
    return within(begin, bytes, std::max(its, base::load_once(segment.control(whose).arena)), its + stride,
                  os::page_size());
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& block = segment.at<segment::Block>(list)[i];
    std::uint64_t bytes = block.bytes.load_relaxed();
    Offset begin = block.begin.load_relaxed();
    auto use = static_cast<segment::BlockUse>(block.use.load_relaxed());
    bool window = use == segment::BlockUse::window;
    bool reserved =
        has_reserved_pages(segment) &&
        within(begin, bytes, segment.huge_region(rank), segment.huge_region(rank + 1), os::huge_page_size());
    // The subtraction wraps for the launcher's region.
    std::uint64_t whose = begin < far || far_stride == 0 ? begin / stride - 1 : (begin - far) / far_stride;
    bool others =
        window && whose < segment.job_size() && within_arena(begin, bytes, static_cast<std::uint32_t>(whose));
    if (reserved || others || within_arena(begin, bytes, rank))
      found.push_back({begin, begin + bytes, static_cast<int>(rank), std::max(block.node.load_relaxed(), -1),
                       window                           ? window_role
                       : use == segment::BlockUse::kept ? kept_role
                                                        : arena_role});
  }
}

} // namespace

bool is_listed(Offset page, const std::vector<Listed>& blocks) {
  auto next = std::partition_point(blocks.begin(), blocks.end(),
                                   [&](const Listed& block) { return block.end <= page; });
  return next != blocks.end() && next->begin <= page;
}

bool has_reserved_pages(const segment::Segment& segment) {
  std::uint64_t page = segment.huge_page_bytes();
  return page != 0 && page == os::huge_page_size();
}

std::vector<Listed> listed_blocks(const segment::Segment& segment) {
  std::vector<Listed> found;
  for (std::uint32_t rank = 0; rank < segment.job_size(); ++rank)
    if (segment::has_region(segment, rank)) add_listed_blocks(segment, rank, found);
  std::sort(found.begin(), found.end(), [](auto& one, auto& other) { return one.begin < other.begin; });
  Offset behind = 0;
  std::erase_if(found, [&](const Listed& block) {
    if (block.begin < behind) return true;
    behind = block.end;
    return false;
  });
  return found;
}

std::vector<Listed> united(const std::vector<Listed>& now, const std::vector<Listed>& earlier) {
  std::vector<Listed> all = now;
  for (const auto& block : earlier) {
    auto next = std::partition_point(now.begin(), now.end(),
                                     [&](const Listed& other) { return other.end <= block.begin; });
    if (next == now.end() || next->begin >= block.end) all.push_back(block);
  }
  std::sort(all.begin(), all.end(), [](auto& one, auto& other) { return one.begin < other.begin; });
  return all;
}

} // namespace near::place
