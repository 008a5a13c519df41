#include "place/parts.h"

#include "os/memory.h"
#include "os/process.h"
#include "place/blocks.h"
#include "segment/activity.h"

#include <algorithm>

namespace near::place {
namespace {

constexpr std::string_view segment_name = "/memfd:nearmpi";

/// A process that has the segment mapped.
struct Mapped {
  std::int32_t pid;
  int rank;
  std::uint64_t base;
};

bool find_base(const std::vector<SmapsEntry>& entries, std::uint64_t inode, std::uint64_t& base) {
  for (const auto& entry : entries)
    if (entry.inode == inode && entry.name.starts_with(segment_name)) {
      base = entry.begin - entry.offset; // policies split the mapping into several
      return true;
    }
  return false;
}

std::vector<Mapped> who_maps(const Snapshot& snapshot, std::uint64_t inode) {
  std::vector<Mapped> found;
  for (const auto& process : snapshot.processes)
    for (const auto& mapping : process.mappings)
      if (mapping.kind == Kind::segment && mapping.entry.inode == inode) {
        found.push_back({process.pid, process.rank, mapping.entry.begin - mapping.entry.offset});
        break;
      }
  std::string smaps;
  std::vector<SmapsEntry> entries;
  Mapped launcher{snapshot.launcher, -1, 0};
  bool is_rank = std::any_of(found.begin(), found.end(), [&](auto& it) { return it.pid == launcher.pid; });
  if (!is_rank && os::read_process_file(launcher.pid, "smaps", smaps).ok() &&
      parse_smaps(smaps, entries).ok() && find_base(entries, inode, launcher.base))
    found.push_back(launcher);
  return found;
}

/// Every part of every region, and the ranks' arenas outside them, in the order of their offsets.
std::vector<Part> parts_of(const segment::Segment& segment, const std::vector<Process>& processes) {
  std::vector<Part> parts;
  auto add = [&](int owner, const char* role, Offset begin, Offset end) {
    Part part;
    part.owner = owner;
    part.role = role;
    part.begin = begin;
    part.end = end;
    part.page_bytes = os::page_size();
    if (owner >= 0) part.node = processes[static_cast<std::size_t>(owner)].node;
    parts.push_back(std::move(part));
  };
  add(-1, "job", 0, segment.region(0));
  for (std::uint32_t row = 0; row < segment.rows(); ++row) {
    Offset begin = segment.region(row), end = begin + segment.stride();
    if (row >= segment.job_size()) {
      add(-1, "nobody's", begin, end);
      continue;
    }
    int rank = static_cast<int>(row);
    if (!segment::has_region(segment, row)) {
      add(rank, "region", begin, end);
      continue;
    }
    const auto& control = segment.control(row);
    const std::pair<const char*, Offset> beginnings[] = {{"control", begin},
                                                         {"queue", base::load_once(control.queue)},
                                                         {"credits", base::load_once(control.credits)},
                                                         {"flags", base::load_once(control.packet_flags)},
                                                         {"area", base::load_once(control.area_part)},
                                                         {"lanes", base::load_once(control.lanes)},
                                                         {"slices", base::load_once(control.slices)},
                                                         {"packets", base::load_once(control.packets)},
                                                         {"statistics", base::load_once(control.statistics)},
                                                         {"traffic", base::load_once(control.traffic)},
                                                         {"blocks", base::load_once(control.blocks)},
                                                         {arena_role, base::load_once(control.arena)},
                                                         {"", end}};
    // Values that another process wrote are not trusted.
    auto before = [](auto& one, auto& other) { return one.second < other.second; };
    bool ordered = std::is_sorted(std::begin(beginnings), std::end(beginnings), before) &&
                   std::all_of(std::begin(beginnings), std::end(beginnings),
                               [](auto& part) { return part.second % os::page_size() == 0; });
    if (!ordered) {
      add(rank, "region", begin, end);
      continue;
    }
    for (std::size_t i = 0; i + 1 < std::size(beginnings); ++i)
      add(rank, beginnings[i].first, beginnings[i].second, beginnings[i + 1].second);
  }
  for (std::uint32_t rank = 0; segment.far_stride() != 0 && rank < segment.job_size(); ++rank)
    add(static_cast<int>(rank), arena_role, segment.far_region(rank), segment.far_region(rank + 1));
  return parts;
}

/// Asks the kernel, through one process, for the nodes of pages that are not yet known. Fails if the process
/// has ended.
Result ask(const Mapped& who, const std::vector<Offset>& pages, std::vector<int>& nodes) {
  std::vector<std::uint64_t> addresses;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < pages.size(); ++i)
    if (nodes[i] < 0) {
      addresses.push_back(who.base + pages[i]);
      indices.push_back(i);
    }
  std::vector<int> told;
  if (addresses.empty()) return {};
  NEAR_TRY(os::nodes_of_pages(who.pid, addresses, told));
  for (std::size_t i = 0; i < told.size(); ++i)
    if (told[i] >= 0) nodes[indices[i]] = told[i];
  return {};
}

/// The ranks that map at least one of these pages.
std::vector<int> ranks_with(const std::vector<Mapped>& mapped, const std::vector<Offset>& pages) {
  std::vector<int> ranks;
  for (const auto& who : mapped) {
    if (who.rank < 0) continue;
    std::vector<int> nodes(pages.size(), os::no_page);
    if (!ask(who, pages, nodes).ok()) continue;
    if (std::any_of(nodes.begin(), nodes.end(), [](int node) { return node >= 0; }))
      ranks.push_back(who.rank);
  }
  return ranks;
}

/// Locates the existing pages of a part: each is looked up in the page table of the owner, and if missing
/// there in those of the others. Returns false if the owner has ended meanwhile. Any process may be the
/// first to touch pages that were allocated (`blocks`, in order).
bool locate_part(const std::vector<Mapped>& mapped, const std::vector<Offset>& pages,
                 const std::vector<Listed>& blocks, Part& part) {
  constexpr std::size_t most_asked = 64; // faulty pages whose mappers are determined, as examples
  const std::uint64_t page = part.page_bytes;
  std::vector<int> nodes(pages.size(), os::no_page);
  auto owner = std::find_if(mapped.begin(), mapped.end(),
                            [&](auto& who) { return part.owner >= 0 && who.rank == part.owner; });
  bool known = owner != mapped.end(), there = !known || ask(*owner, pages, nodes).ok();
  std::vector<bool> unmapped_by_owner(pages.size());
  for (std::size_t i = 0; i < pages.size(); ++i) unmapped_by_owner[i] = nodes[i] < 0;
  for (const auto& who : mapped) (void)!ask(who, pages, nodes).ok();

  bool nobodys = part.role == "nobody's";
  std::vector<Offset> faulty;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (nodes[i] < 0) {
      part.not_in_core += page;
      continue;
    }
    part.bytes_on[nodes[i]] += page;
    bool foreign = nobodys || (known && there && unmapped_by_owner[i] && !is_listed(pages[i], blocks));
    bool judged = part.node >= 0, local = nodes[i] == part.node;
    if (foreign) part.foreign += page;
    if (judged) part.share += {page, local ? page : 0};
    if ((foreign || (judged && !local)) && faulty.size() < most_asked) faulty.push_back(pages[i]);
    append_page(part.ranges, pages[i], page, nodes[i], foreign || (judged && !local));
  }
  if (!faulty.empty()) part.mapped_by = ranks_with(mapped, faulty);
  return there;
}

/// The owner, intended node and role of pages of an arena.
struct Meant {
  int owner, node;
  std::string role;
  auto operator<=>(const Meant&) const = default;
};
using MeantPages = std::map<Meant, std::vector<Offset>>;

/// Groups an arena's pages by block; `otherwise` is for pages that are in no block.
MeantPages divide(const std::vector<Offset>& pages, const std::vector<Listed>& blocks, const Meant& otherwise,
                  const std::vector<Process>& processes) {
  MeantPages divided;
  auto block = blocks.begin();
  for (Offset page : pages) {
    while (block != blocks.end() && block->end <= page) ++block;
    bool listed = block != blocks.end() && block->begin <= page;
    if (!listed) {
      divided[otherwise].push_back(page);
      continue;
    }
    int node = block->node >= 0 ? block->node : processes[static_cast<std::size_t>(block->owner)].node;
    divided[{block->owner, node, block->role}].push_back(page);
  }
  return divided;
}

/// How many bytes of these pages are in huge pages, according to smaps of the owner.
std::uint64_t huge_bytes(const Snapshot& snapshot, std::uint64_t inode, const Part& part,
                         const std::vector<Offset>& pages) {
  if (part.page_bytes != snapshot.page_bytes) return part.page_bytes * pages.size();
  if (part.owner < 0) return 0;
  std::uint64_t found = 0;
  for (const auto& mapping : snapshot.processes[static_cast<std::size_t>(part.owner)].mappings) {
    const auto& entry = mapping.entry;
    if (mapping.kind != Kind::segment || entry.inode != inode || entry.huge == 0) continue;
    auto first = std::lower_bound(pages.begin(), pages.end(), entry.offset);
    auto behind = std::lower_bound(first, pages.end(), entry.offset + (entry.end - entry.begin));
    found += std::min(entry.huge, static_cast<std::uint64_t>(behind - first) * part.page_bytes);
  }
  return found;
}

} // namespace

void locate_segment(const segment::Segment& segment, int descriptor, Snapshot& snapshot) {
  std::uint64_t inode = os::inode_of(descriptor);
  auto mapped = who_maps(snapshot, inode);
  auto take = [&](Part part, const std::vector<Offset>& pages, const std::vector<Listed>& blocks) {
    part.huge = huge_bytes(snapshot, inode, part, pages);
    if (!locate_part(mapped, pages, blocks, part))
      snapshot.processes[static_cast<std::size_t>(part.owner)].problem = "it ended during the sample";
    snapshot.parts.push_back(std::move(part));
  };
  const auto earlier = listed_blocks(segment);
  auto take_arena = [&](Part part, const std::vector<Offset>& pages) {
    const auto blocks = united(listed_blocks(segment), earlier);
    Meant otherwise{part.owner, part.node, part.role};
    for (auto& [meant, its] : divide(pages, blocks, otherwise, snapshot.processes)) {
      part.owner = meant.owner;
      part.node = meant.node;
      part.role = meant.role;
      take(part, its, blocks);
    }
  };
  for (auto& part : parts_of(segment, snapshot.processes)) {
    std::vector<Offset> pages;
    Offset first = 0, behind = part.begin;
    while (behind < part.end && os::next_data(descriptor, behind, part.end, first, behind))
      for (Offset at = std::max(first, part.begin); at < behind; at += part.page_bytes) pages.push_back(at);
    bool arena = part.role == arena_role;
    if (arena)
      take_arena(part, pages);
    else if (!pages.empty())
      take(part, pages, {});
    if (!arena || part.begin >= segment.far_region(0) || !has_reserved_pages(segment)) continue;
    // For reserved pages the kernel reports no holes, so the pages of listed blocks are examined.
    part.page_bytes = os::huge_page_size();
    part.begin = segment.huge_region(static_cast<std::uint32_t>(part.owner));
    part.end = part.begin + segment.huge_stride();
    pages.clear();
    for (const auto& block : listed_blocks(segment))
      for (Offset at = std::max(block.begin, part.begin); at < std::min(block.end, part.end);
           at += part.page_bytes)
        pages.push_back(at);
    take_arena(part, pages);
  }
}

} // namespace near::place
