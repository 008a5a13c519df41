#include "place/look.h"

#include "os/memory.h"
#include "os/process.h"
#include "segment/activity.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>

namespace near::place {

using base::Code;
using base::fail;
using segment::Offset;

namespace {

constexpr std::string_view segment_name = "/memfd:nearmpi";
constexpr const char *arena_role = "arena", *window_role = "window", *kept_role = "kept";

std::string now_text() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// The 39th field of /proc/<pid>/stat: "pid (name) state parent ...", and the name may hold anything.
int last_processor(std::int32_t pid) {
  std::string text;
  if (!os::read_process_file(pid, "stat", text).ok()) return -1;
  auto at = text.rfind(')');
  for (int field = 2; field < 39 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  int processor = -1;
  if (at != std::string::npos) std::from_chars(text.data() + at + 1, text.data() + text.size(), processor);
  return processor;
}

// ---- one process ---------------------------------------------------------------------------------------

void read_binding(const std::vector<os::Node>& nodes, Process& process) {
  auto threads = os::threads_of(process.pid);
  process.threads = static_cast<unsigned>(threads.size());
  for (auto thread : threads) {
    os::CpuSet its;
    if (os::affinity_of(thread, its).ok()) process.allowed = process.allowed | its;
  }
  process.nodes = nodes_of(nodes, process.allowed);
  process.processor = last_processor(process.pid);
}

/// Where a mapping's pages of the process's own should lie.
std::vector<int> intended_nodes(const Process& process, const NumaLine& line) {
  auto named = nodes_of_policy(line.policy);
  if (!named.empty()) return named;
  return process.node >= 0 ? std::vector<int>{process.node} : std::vector<int>{};
}

/// Each page of the mapping: whose it is, and on which node.
Result locate(os::PageTable& table, std::int32_t pid, Mapping& mapping) {
  std::vector<os::PageEntry> entries;
  auto found = table.entries(mapping.entry.begin, mapping.entry.end, entries);
  if (found.is(Code::limit)) return {}; // the totals of numa_maps are there all the same
  NEAR_TRY(found);
  std::vector<std::uint64_t> addresses;
  for (const auto& entry : entries)
    if (entry.present) addresses.push_back(entry.address);
  std::vector<int> nodes;
  NEAR_TRY(os::nodes_of_pages(pid, addresses, nodes));
  const std::uint64_t page = os::page_size();
  std::size_t index = 0;
  for (const auto& entry : entries) {
    if (!entry.present) {
      mapping.not_in_core += page;
      continue;
    }
    int node = nodes[index++];
    if (node == os::zero_page) mapping.zeros += page;
    if (node < 0) continue;
    bool own = !entry.shared_or_file && entry.exclusive;
    if (!entry.shared_or_file && !entry.exclusive) mapping.copy_on_write += page;
    bool judged = own && !mapping.intended.empty();
    bool local = std::find(mapping.intended.begin(), mapping.intended.end(), node) != mapping.intended.end();
    if (judged) mapping.own += {page, local ? page : 0};
    append_page(mapping.ranges, entry.address, page, node, judged && !local);
  }
  mapping.located = true;
  return {};
}

Result read_mappings(Process& process) {
  std::string smaps, numa_maps;
  NEAR_TRY(os::read_process_file(process.pid, "smaps", smaps));
  NEAR_TRY(os::read_process_file(process.pid, "numa_maps", numa_maps));
  if (smaps.empty())
    return fail(Code::gone, "process {} has no memory of its own: it has ended, or is a part of the kernel",
                process.pid);
  std::vector<SmapsEntry> entries;
  std::vector<NumaLine> lines;
  NEAR_TRY(parse_smaps(smaps, entries));
  NEAR_TRY(parse_numa_maps(numa_maps, lines));
  os::PageTable table;
  NEAR_TRY(table.open(process.pid));

  // The two texts are of two moments, so one may have mappings that the other has not. The totals are those
  // of numa_maps.
  std::map<std::uint64_t, const SmapsEntry*> by_begin;
  for (const auto& entry : entries) by_begin[entry.begin] = &entry;
  for (auto& line : lines) {
    Mapping mapping;
    if (auto found = by_begin.find(line.begin); found != by_begin.end())
      mapping.entry = *found->second;
    else
      mapping.entry.begin = line.begin, mapping.entry.name = line.file;
    mapping.kind = kind_of(mapping.entry, process.program);
    mapping.intended = intended_nodes(process, line);
    for (auto [node, bytes] : line.bytes_on()) process.bytes_on[node] += bytes;
    mapping.line = std::move(line);
    // The pages of a segment are looked at once, by their owners (locate_part). What numa_maps sees no page
    // of may still have some in swap.
    bool some = !mapping.line.pages_on.empty() || mapping.entry.swapped != 0;
    if (mapping.entry.end != 0 && mapping.kind != Kind::segment && some)
      NEAR_TRY(locate(table, process.pid, mapping));
    process.mappings.push_back(std::move(mapping));
  }
  return {};
}

Result read_process(const std::vector<os::Node>& nodes, Process& process) {
  process.program = os::program_of(process.pid);
  read_binding(nodes, process);
  if (process.node < 0 && process.planned < 0 && process.nodes.size() == 1) process.node = process.nodes[0];
  return read_mappings(process);
}

// ---- the ranks of a job --------------------------------------------------------------------------------

/// The processors of the smallest part of the machine that holds all that mpiexec bound the rank to; empty
/// when that is unknown.
os::CpuSet bound_part(const std::vector<os::Node>& nodes, int processor, const segment::Place& place) {
  constexpr auto several = segment::Place::several;
  os::CpuSet part;
  if (place.core != several)
    part = os::processors_with(processor, "topology/core_cpus_list");
  else if (place.l3 != several)
    part = os::processors_with(processor, "cache/index3/shared_cpu_list");
  if (part.empty() && place.numa != several)
    for (const auto& node : nodes)
      if (node.cpus.has(static_cast<unsigned>(processor))) part = node.cpus;
  if (part.empty() && place.package != several)
    part = os::processors_with(processor, "topology/package_cpus_list");
  return part;
}

/// mpiexec's binding as a rank table tells it, which every rank can write.
int planned_processor(const segment::RankEntry& entry) {
  constexpr std::int32_t most_processors = 1 << 16;
  std::int32_t told = base::load_once(entry.first_cpu);
  return told >= 0 && told < most_processors ? told : -1;
}

/// The process that took the slot: with a wrapper script it is not the one that mpiexec started.
std::int32_t process_of(const segment::RankEntry& entry) {
  auto started = static_cast<std::int32_t>(entry.pid.load_relaxed());
  auto claimed = static_cast<std::int32_t>(entry.claimed.load_relaxed());
  if (claimed == 0 || claimed == started) return started;
  // In a process namespace of its own it knows itself by another number.
  auto found = os::find_descendant(started, claimed);
  return found != 0 ? found : claimed;
}

void read_rank(const segment::Segment& segment, std::int32_t launcher, std::uint32_t slot,
               const std::vector<os::Node>& nodes, Process& process) {
  const auto& entry = segment.entry(slot);
  process.rank = static_cast<int>(slot);
  process.pid = process_of(entry);
  process.planned = planned_processor(entry);
  // SYNC: rank-phase. Acquire: its plan and its region were written before.
  auto phase = static_cast<segment::Phase>(entry.phase.load_acquire());
  process.phase = segment::phase_name(phase);
  if (process.planned >= 0 && entry.place.numa != segment::Place::several) {
    os::CpuSet one;
    one.add(static_cast<unsigned>(process.planned));
    auto its = nodes_of(nodes, one);
    if (!its.empty()) process.node = its[0];
  }
  if (process.pid <= 0 || phase == segment::Phase::dead) {
    process.problem = process.pid <= 0 ? "it has not started" : "it has ended";
    return;
  }
  if (auto read = read_process(nodes, process); !read.ok()) {
    process.problem = base::failure_text();
    process.unseen = !read.is(Code::gone);
  } else if (!os::descends_from(process.pid, launcher)) {
    // Whatever the table says, a stranger's memory is not shown as the rank's.
    Process stranger;
    stranger.pid = process.pid, stranger.rank = process.rank, stranger.phase = process.phase;
    stranger.problem = "no process of the job has that number";
    process = std::move(stranger);
    return;
  }
  if (process.planned < 0 || process.allowed.empty()) return;
  auto part = bound_part(nodes, process.planned, entry.place);
  process.left = !part.empty() && (process.allowed & part).count() != process.allowed.count();
}

// ---- the segment ---------------------------------------------------------------------------------------

/// A process that has the segment mapped.
struct Mapped {
  std::int32_t pid;
  int rank;
  std::uint64_t base;
};

bool find_base(const std::vector<SmapsEntry>& entries, std::uint64_t inode, std::uint64_t& base) {
  for (const auto& entry : entries)
    if (entry.inode == inode && entry.name.starts_with(segment_name)) {
      base = entry.begin - entry.offset; // policies cut the mapping into several
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
  for (std::uint32_t slot = 0; slot < segment.slots(); ++slot) {
    Offset begin = segment.region(slot), end = begin + segment.stride();
    if (slot >= segment.job_size()) {
      add(-1, "nobody's", begin, end);
      continue;
    }
    int rank = static_cast<int>(slot);
    if (!segment::has_region(segment, slot)) {
      add(rank, "region", begin, end);
      continue;
    }
    const auto& control = segment.control(slot);
    const std::pair<const char*, Offset> beginnings[] = {{"control", begin},
                                                         {"queue", base::load_once(control.queue)},
                                                         {"lanes", base::load_once(control.lanes)},
                                                         {"credits", base::load_once(control.credits)},
                                                         {"flags", base::load_once(control.packet_flags)},
                                                         {"packets", base::load_once(control.packets)},
                                                         {"statistics", base::load_once(control.statistics)},
                                                         {"traffic", base::load_once(control.traffic)},
                                                         {"blocks", base::load_once(control.blocks)},
                                                         {arena_role, base::load_once(control.arena)},
                                                         {"", end}};
    // What another process wrote is not relied on.
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
  for (std::uint32_t slot = 0; segment.far_stride() != 0 && slot < segment.job_size(); ++slot)
    add(static_cast<int>(slot), arena_role, segment.far_region(slot), segment.far_region(slot + 1));
  return parts;
}

/// Asks a process for the nodes of pages that nobody has told yet. Fails when it is gone meanwhile.
Result ask(const Mapped& who, const std::vector<Offset>& pages, std::vector<int>& nodes) {
  std::vector<std::uint64_t> addresses;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < pages.size(); ++i)
    if (nodes[i] < 0) {
      addresses.push_back(who.base + pages[i]);
      places.push_back(i);
    }
  std::vector<int> told;
  if (addresses.empty()) return {};
  NEAR_TRY(os::nodes_of_pages(who.pid, addresses, told));
  for (std::size_t i = 0; i < told.size(); ++i)
    if (told[i] >= 0) nodes[places[i]] = told[i];
  return {};
}

/// The ranks that map one of these pages.
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

/// What an arena has handed out, to whom, and where it was asked to be.
struct Listed {
  Offset begin, end;
  int owner;
  int node; ///< -1: nowhere in particular
  const char* role;
};

bool is_listed(Offset page, const std::vector<Listed>& blocks) {
  auto next = std::partition_point(blocks.begin(), blocks.end(),
                                   [&](const Listed& block) { return block.end <= page; });
  return next != blocks.end() && next->begin <= page;
}

/// A part's pages, which exist: each is asked for in the owner's page table, and what that lacks in the
/// others'. False when the owner has ended meanwhile.
/// Pages that were handed out (`blocks`, in order) anybody may touch first.
bool locate_part(const std::vector<Mapped>& mapped, const std::vector<Offset>& pages,
                 const std::vector<Listed>& blocks, Part& part) {
  constexpr std::size_t most_asked = 64; // of faulty pages: who maps them is only told as an example
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

/// Whether part of the segment is of reserved huge pages, of the size that this kernel has.
bool has_reserved_pages(const segment::Segment& segment) {
  std::uint64_t page = segment.huge_page_bytes();
  return page != 0 && page == os::huge_page_size();
}

/// Adds the blocks that a rank has listed as its own. What another process wrote is not relied on, and read
/// once: what is not in the rank's arenas, or of a window in another's, or not of whole pages, is left out.
void add_listed_blocks(const segment::Segment& segment, std::uint32_t slot, std::vector<Listed>& found) {
  const auto& control = segment.control(slot);
  const Offset region = segment.region(slot), stride = segment.stride();
  const Offset list = base::load_once(control.blocks), arena = base::load_once(control.arena);
  // SYNC: block-listed. Acquire: so many were written before. To read a page that is not there would make it.
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
        within(begin, bytes, segment.huge_region(slot), segment.huge_region(slot + 1), os::huge_page_size());
    // The first wraps for the launcher's region.
    std::uint64_t whose = begin < far || far_stride == 0 ? begin / stride - 1 : (begin - far) / far_stride;
    bool others =
        window && whose < segment.job_size() && within_arena(begin, bytes, static_cast<std::uint32_t>(whose));
    if (reserved || others || within_arena(begin, bytes, slot))
      found.push_back({begin, begin + bytes, static_cast<int>(slot), std::max(block.node.load_relaxed(), -1),
                       window                           ? window_role
                       : use == segment::BlockUse::kept ? kept_role
                                                        : arena_role});
  }
}

/// Those of all ranks, in the order of their beginnings; of two that overlap the first.
std::vector<Listed> listed_blocks(const segment::Segment& segment) {
  std::vector<Listed> found;
  for (std::uint32_t slot = 0; slot < segment.job_size(); ++slot)
    if (segment::has_region(segment, slot)) add_listed_blocks(segment, slot, found);
  std::sort(found.begin(), found.end(), [](auto& one, auto& other) { return one.begin < other.begin; });
  Offset behind = 0;
  std::erase_if(found, [&](const Listed& block) {
    if (block.begin < behind) return true;
    behind = block.end;
    return false;
  });
  return found;
}

/// What was listed now, and beside that what was listed earlier: a window may come or go between the look at
/// the lists and the look at the pages.
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

/// Whose pages of an arena are, what for, and where they are meant to be.
struct Meant {
  int owner, node;
  std::string role;
  auto operator<=>(const Meant&) const = default;
};
using MeantPages = std::map<Meant, std::vector<Offset>>;

/// Divides pages of an arena: `otherwise` are those of no block.
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

/// Bytes of these pages in huge ones, by what smaps tells of the owner's mappings.
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

void locate_segment(const segment::Segment& segment, int descriptor, Snapshot& snapshot) {
  std::uint64_t inode = os::inode_of(descriptor);
  auto mapped = who_maps(snapshot, inode);
  auto take = [&](Part part, const std::vector<Offset>& pages, const std::vector<Listed>& blocks) {
    part.huge = huge_bytes(snapshot, inode, part, pages);
    if (!locate_part(mapped, pages, blocks, part))
      snapshot.processes[static_cast<std::size_t>(part.owner)].problem = "it ended while it was looked at";
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
    // Of reserved pages the kernel lists no holes: those in listed blocks are looked at.
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

// ---- what the ranks have sent ---------------------------------------------------------------------------

std::vector<Flow> read_flows(const segment::Segment& segment, int descriptor) {
  const std::uint32_t ranks = segment.job_size();
  std::vector<Flow> flows;
  for (std::uint32_t from = 0; from < ranks; ++from) {
    if (!segment::has_region(segment, from)) continue;
    for (const auto& [to, sent] : segment::traffic_of(segment, descriptor, from)) {
      if (to >= ranks) break;
      auto distance = from == to
                          ? segment::Distance::core // also of one that is not bound
                          : segment::distance_between(segment.entry(from).place, segment.entry(to).place);
      flows.push_back({static_cast<int>(from), static_cast<int>(to), distance, sent});
    }
  }
  return flows;
}

} // namespace

Viewer::~Viewer() { os::close_descriptor(descriptor_); }

Result Viewer::open_job(std::int32_t launcher) {
  NEAR_TRY(segment::open_job(launcher, descriptor_));
  NEAR_TRY(segment_.attach(descriptor_, false));
  pid_ = launcher;
  return {};
}

Result Viewer::open_process(std::int32_t pid) {
  std::string text;
  NEAR_TRY(os::read_process_file(pid, "smaps", text));
  pid_ = pid;
  return {};
}

Result Viewer::look(Snapshot& snapshot) {
  auto started = std::chrono::steady_clock::now();
  Snapshot made;
  made.launcher = pid_;
  made.at = now_text();
  made.page_bytes = os::page_size();
  NEAR_TRY(os::read_nodes(made.nodes));
  if (!segment_.mapped()) {
    Process process;
    process.pid = pid_;
    NEAR_TRY(read_process(made.nodes, process));
    made.processes.push_back(std::move(process));
  } else {
    made.job = segment_.name();
    bool any = false;
    for (std::uint32_t slot = 0; slot < segment_.job_size(); ++slot) {
      Process process;
      read_rank(segment_, pid_, slot, made.nodes, process);
      any |= process.problem.empty();
      made.processes.push_back(std::move(process));
    }
    // One whose every rank says the same (no permission, no NUMA) is no job to show.
    if (!any) {
      std::string problem = made.processes.empty() ? "it has no ranks" : made.processes[0].problem;
      return fail(Code::gone, "no rank of {} can be looked at: {}", made.job, problem);
    }
    locate_segment(segment_, descriptor_, made);
    read_traffic(made);
  }
  made.took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  snapshot = std::move(made);
  return {};
}

void Viewer::read_traffic(Snapshot& snapshot) const {
  if (segment_.mapped() && snapshot.job == segment_.name())
    snapshot.flows = read_flows(segment_, descriptor_);
}

} // namespace near::place
