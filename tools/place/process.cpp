#include "place/process.h"

#include "os/memory.h"
#include "os/process.h"
#include "segment/activity.h"

#include <algorithm>
#include <charconv>

namespace near::place {

using base::Code;
using base::fail;

namespace {

/// Reads the 39th field of /proc/<pid>/stat: "pid (name) state parent ...", where the name may contain
/// anything.
int last_processor(std::int32_t pid) {
  std::string text;
  if (!os::read_process_file(pid, "stat", text).ok()) return -1;
  auto at = text.rfind(')');
  for (int field = 2; field < 39 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  int processor = -1;
  if (at != std::string::npos) std::from_chars(text.data() + at + 1, text.data() + text.size(), processor);
  return processor;
}

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

/// The nodes on which the process's own pages of a mapping should lie.
std::vector<int> intended_nodes(const Process& process, const NumaLine& line) {
  auto named = nodes_of_policy(line.policy);
  if (!named.empty()) return named;
  return process.node >= 0 ? std::vector<int>{process.node} : std::vector<int>{};
}

/// Locates each page of the mapping: its owner and its node.
Result locate(os::PageTable& table, std::int32_t pid, Mapping& mapping) {
  std::vector<os::PageEntry> entries;
  auto found = table.entries(mapping.entry.begin, mapping.entry.end, entries);
  if (found.is(Code::limit)) return {}; // the totals of numa_maps are still valid
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
    return fail(Code::gone, "process {} has no memory of its own: it has ended, or is a kernel thread",
                process.pid);
  std::vector<SmapsEntry> entries;
  std::vector<NumaLine> lines;
  NEAR_TRY(parse_smaps(smaps, entries));
  NEAR_TRY(parse_numa_maps(numa_maps, lines));
  os::PageTable table;
  NEAR_TRY(table.open(process.pid));

  // The two files are read at different moments, so each may have mappings that the other lacks. The totals
  // are those of numa_maps.
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
    // The pages of a segment are located once, through their owners (locate_part). A mapping without pages
    // in numa_maps may still have some in swap.
    bool some = !mapping.line.pages_on.empty() || mapping.entry.swapped != 0;
    if (mapping.entry.end != 0 && mapping.kind != Kind::segment && some)
      NEAR_TRY(locate(table, process.pid, mapping));
    process.mappings.push_back(std::move(mapping));
  }
  return {};
}

/// The processors of the smallest part of the machine that contains all processors to which mpiexec bound the
/// rank; empty if unknown.
os::CpuSet bound_part(const std::vector<os::Node>& nodes, int processor, const segment::Location& location) {
  constexpr auto several = segment::Location::several;
  os::CpuSet part;
  if (location.core != several)
    part = os::processors_with(processor, "topology/core_cpus_list");
  else if (location.l3 != several)
    part = os::processors_with(processor, "cache/index3/shared_cpu_list");
  if (part.empty() && location.numa != several)
    for (const auto& node : nodes)
      if (node.cpus.has(static_cast<unsigned>(processor))) part = node.cpus;
  if (part.empty() && location.package != several)
    part = os::processors_with(processor, "topology/package_cpus_list");
  return part;
}

/// The processor to which mpiexec bound the rank, from the rank table, which every rank can write.
int planned_processor(const segment::RankEntry& entry) {
  constexpr std::int32_t most_processors = 1 << 16;
  std::int32_t told = base::load_once(entry.first_cpu);
  return told >= 0 && told < most_processors ? told : -1;
}

/// The process that claimed the row; with a wrapper script it is not the one that mpiexec started.
std::int32_t process_of(const segment::RankEntry& entry) {
  auto started = static_cast<std::int32_t>(entry.pid.load_relaxed());
  auto claimed = static_cast<std::int32_t>(entry.claimed.load_relaxed());
  if (claimed == 0 || claimed == started) return started;
  // In a process namespace of its own it has a different number.
  auto found = os::find_descendant(started, claimed);
  return found != 0 ? found : claimed;
}

} // namespace

Result read_process(const std::vector<os::Node>& nodes, Process& process) {
  process.program = os::program_of(process.pid);
  read_binding(nodes, process);
  if (process.node < 0 && process.planned < 0 && process.nodes.size() == 1) process.node = process.nodes[0];
  return read_mappings(process);
}

void read_rank(const segment::Segment& segment, std::int32_t launcher, std::uint32_t rank,
               const std::vector<os::Node>& nodes, Process& process) {
  const auto& entry = segment.entry(rank);
  process.rank = static_cast<int>(rank);
  process.pid = process_of(entry);
  process.planned = planned_processor(entry);
  // SYNC: rank-phase. Acquire: its binding and its region were written before.
  auto phase = static_cast<segment::Phase>(entry.phase.load_acquire());
  process.phase = segment::phase_name(phase);
  if (process.planned >= 0 && entry.location.numa != segment::Location::several) {
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
    // Whatever the table says, the memory of an unrelated process is not shown as that of the rank.
    Process unrelated;
    unrelated.pid = process.pid, unrelated.rank = process.rank, unrelated.phase = process.phase;
    unrelated.problem = "no process of the job has that number";
    process = std::move(unrelated);
    return;
  }
  if (process.planned < 0 || process.allowed.empty()) return;
  auto part = bound_part(nodes, process.planned, entry.location);
  process.left = !part.empty() && (process.allowed & part).count() != process.allowed.count();
}

} // namespace near::place
