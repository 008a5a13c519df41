// Warnings, and the rows that --assert-local compares with its percentage.
#include "place/snapshot.h"

#include "base/text.h"

#include <algorithm>

namespace near::place {

namespace {

std::string who(int rank, std::int32_t pid) {
  return rank >= 0 ? base::format("rank {}", rank) : base::format("process {}", pid);
}

std::string list_of(const std::vector<int>& numbers) {
  os::CpuSet set;
  for (int number : numbers) set.add(static_cast<unsigned>(number));
  return set.text();
}

std::string nodes_text(const std::vector<int>& nodes) {
  return base::format("{} {}", nodes.size() == 1 ? "node" : "nodes", list_of(nodes));
}

std::string ranks_text(const std::vector<int>& ranks) {
  return base::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", list_of(ranks));
}

std::uint64_t pages_in(const Snapshot& snapshot, std::uint64_t bytes) {
  return snapshot.page_bytes == 0 ? 0 : bytes / snapshot.page_bytes;
}

/// "1 page at 0x7f..., 3 pages at 0x..., and 5 more ranges", and the nodes on which they lie.
std::string wrong_ranges(const Snapshot& snapshot, const std::vector<const Range*>& ranges,
                         std::vector<int>& nodes) {
  constexpr std::size_t most_shown = 3;
  std::string text;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (std::find(nodes.begin(), nodes.end(), ranges[i]->node) == nodes.end())
      nodes.push_back(ranges[i]->node);
    if (i >= most_shown) continue;
    std::uint64_t pages = pages_in(snapshot, ranges[i]->end - ranges[i]->begin);
    text += base::format("{}{} at {:#x}", text.empty() ? "" : ", ", base::counted(pages, "page"),
                         ranges[i]->begin);
  }
  if (ranges.size() > most_shown)
    text += base::format(", and {}", base::counted(ranges.size() - most_shown, "more range"));
  return text;
}

/// If the intended node has almost no free memory, that explains everything.
std::string if_full(const Snapshot& snapshot, int node) {
  constexpr std::uint64_t next_to_nothing = 50; // a fiftieth: the kernel keeps that much for itself
  for (const auto& each : snapshot.nodes)
    if (each.number == node && each.bytes != 0 && each.free_bytes < each.bytes / next_to_nothing)
      return base::format(
          "Node {} has only {} MiB free, so pages go elsewhere: use fewer ranks on it or less "
          "memory, or drop cached files. ",
          node, each.free_bytes >> 20);
  return {};
}

/// Those of `ranks` that run on one of the nodes.
std::vector<int> running_on(const Snapshot& snapshot, const std::vector<int>& ranks, int owner,
                            const std::vector<int>& nodes) {
  std::vector<int> found;
  for (int rank : ranks) {
    const auto& its = snapshot.process_of(rank).nodes;
    if (rank != owner && std::any_of(its.begin(), its.end(), [&](int node) {
          return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
        }))
      found.push_back(rank);
  }
  return found;
}

Warning wrong_part(const Snapshot& snapshot, const Part& part) {
  std::vector<const Range*> ranges;
  for (const auto& range : part.ranges)
    if (range.wrong && range.node != part.node) ranges.push_back(&range);
  std::vector<int> nodes;
  auto where = wrong_ranges(snapshot, ranges, nodes);
  Warning warning;
  warning.what = Warning::What::wrong_node;
  warning.rank = part.owner;
  warning.pid = snapshot.process_of(part.owner).pid;
  warning.where = part.role;
  warning.share = part.share;
  warning.text = base::format("rank {} {}: {} of {} not on node {} but on {} ({} of the segment)", part.owner,
                              part.role, pages_in(snapshot, part.share.judged - part.share.local),
                              base::counted(pages_in(snapshot, part.share.judged), "page"), part.node,
                              nodes_text(nodes), where);
  warning.advice = if_full(snapshot, part.node);
  auto suspects = running_on(snapshot, part.mapped_by, part.owner, nodes);
  // Peers map queues and packets anyway; if most of a part is wrong, they are not the cause.
  if (part.share.local < part.share.judged / 2) suspects.clear();
  if (suspects.empty())
    warning.advice += base::format("Rank {} itself ran elsewhere when it wrote them first: leave the binding "
                                   "that mpiexec gave as it is until MPI_Init has returned.",
                                   part.owner);
  else
    warning.advice +=
        base::format("{} there and {} them: let rank {} write its memory first, before it tells "
                     "others where it is.",
                     ranks_text(suspects) + (suspects.size() == 1 ? " runs" : " run"),
                     suspects.size() == 1 ? "maps" : "map", part.owner);
  return warning;
}

Warning foreign_part(const Snapshot& snapshot, const Part& part) {
  Warning warning;
  warning.what = Warning::What::foreign_page;
  warning.rank = part.owner;
  warning.where = part.role;
  auto pages = base::counted(pages_in(snapshot, part.foreign), "page");
  std::string mappers = part.mapped_by.empty() ? "no rank that is still there" : ranks_text(part.mapped_by);
  if (part.owner >= 0) {
    warning.pid = snapshot.process_of(part.owner).pid;
    warning.text = base::format("rank {} {}: {} that rank {} has not touched; mapped by {}", part.owner,
                                part.role, pages, part.owner, mappers);
    warning.advice =
        base::format("Another rank read or wrote memory of rank {} before it did, beyond what was "
                     "allocated: look for an index out of range into memory of MPI_Alloc_mem.",
                     part.owner);
  } else {
    warning.text = base::format("{} in a region that belongs to no rank; mapped by {}", pages, mappers);
    warning.advice = "A rank wrote beyond the end of shared memory: look for an index out of range.";
  }
  return warning;
}

Warning left_binding(const Process& process) {
  Warning warning;
  warning.what = Warning::What::left_binding;
  warning.rank = process.rank;
  warning.pid = process.pid;
  warning.text =
      base::format("rank {} may now run on processors {} ({}); mpiexec had bound it to processor {}{}",
                   process.rank, process.allowed.text(), nodes_text(process.nodes), process.planned,
                   process.node >= 0 ? base::format(" on node {}", process.node) : "");
  warning.advice = "Something in the program sets affinities: an OpenMP or BLAS library (OMP_PROC_BIND, "
                   "KMP_AFFINITY), numactl or taskset in a wrapper. Remove that, or give the rank the "
                   "processors with mpiexec --map-by and --bind-to.";
  return warning;
}

/// For private memory, one row for each kind of mapping, with the wrong ranges of all of them.
struct Private {
  Share share;
  std::vector<const Range*> wrong;
};
std::map<Kind, Private> private_memory(const Process& process) {
  std::map<Kind, Private> kinds;
  for (const auto& mapping : process.mappings) {
    if (mapping.own.judged == 0) continue;
    auto& kind = kinds[mapping.kind];
    kind.share += mapping.own;
    for (const auto& range : mapping.ranges)
      if (range.wrong) kind.wrong.push_back(&range);
  }
  return kinds;
}

void warn_of_private(const Snapshot& snapshot, const Process& process, std::vector<Warning>& warnings) {
  for (const auto& [kind, memory] : private_memory(process)) {
    if (memory.share.local == memory.share.judged) continue;
    std::vector<int> nodes;
    auto where = wrong_ranges(snapshot, memory.wrong, nodes);
    Warning warning;
    warning.what = Warning::What::wrong_node;
    warning.rank = process.rank;
    warning.pid = process.pid;
    warning.where = kind_name(kind);
    warning.share = memory.share;
    std::string wanted =
        process.node >= 0 ? base::format("node {}", process.node) : "the nodes of their policy";
    warning.text = base::format("{} {}: {} of {} not on {} but on {} ({})", who(process.rank, process.pid),
                                kind_name(kind), pages_in(snapshot, memory.share.judged - memory.share.local),
                                base::counted(pages_in(snapshot, memory.share.judged), "page"), wanted,
                                nodes_text(nodes), where);
    warning.advice =
        if_full(snapshot, process.node) +
        base::format(
            "They were first written by a thread that ran there. Write memory first from where it is "
            "used later, and do not change the binding in between{}.",
            process.left ? "; it has changed" : "");
    warnings.push_back(std::move(warning));
  }
}

} // namespace

const char* warning_name(Warning::What what) {
  switch (what) {
  case Warning::What::wrong_node: return "wrong-node";
  case Warning::What::left_binding: return "left-binding";
  case Warning::What::foreign_page: return "foreign-page";
  }
  return "?";
}

std::vector<Warning> warnings_of(const Snapshot& snapshot) {
  std::vector<Warning> warnings;
  for (const auto& process : snapshot.processes)
    if (process.left) warnings.push_back(left_binding(process));
  for (const auto& part : snapshot.parts) {
    if (part.share.local != part.share.judged) warnings.push_back(wrong_part(snapshot, part));
    if (part.foreign != 0) warnings.push_back(foreign_part(snapshot, part));
  }
  for (const auto& process : snapshot.processes) warn_of_private(snapshot, process, warnings);
  return warnings;
}

std::vector<Row> rows_of(const Snapshot& snapshot) {
  std::vector<Row> rows;
  for (const auto& part : snapshot.parts)
    if (part.share.judged != 0)
      rows.push_back({part.owner, snapshot.process_of(part.owner).pid, part.role, part.share});
  for (const auto& process : snapshot.processes)
    for (const auto& [kind, memory] : private_memory(process))
      rows.push_back({process.rank, process.pid, kind_name(kind), memory.share});
  return rows;
}

std::vector<Row> offenders(const Snapshot& snapshot, double percent, bool& judged) {
  auto rows = rows_of(snapshot);
  judged = !rows.empty();
  std::erase_if(rows, [&](const Row& row) { return row.share.percent() >= percent; });
  return rows;
}

} // namespace near::place
