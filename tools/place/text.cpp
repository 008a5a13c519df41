// The snapshot as tables.
#include "place/show.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace near::place {

namespace {

std::string mib(std::uint64_t bytes) {
  return bytes == 0 ? "-" : base::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

/// KiB for the segment, where single pages matter.
std::string kib(std::uint64_t bytes) { return bytes == 0 ? "-" : base::format("{}", bytes >> 10); }

std::string percent_text(const Share& share) {
  if (share.judged == 0) return "-";
  // Never rounded up to 100.
  if (share.local != share.judged) return base::format("{:.2f}%", std::min(share.percent(), 99.99));
  return "100%";
}

std::uint64_t on(const BytesOn& bytes, int node) {
  auto found = bytes.find(node);
  return found == bytes.end() ? 0 : found->second;
}

std::string node_name(int node) { return node < 0 ? "any" : std::to_string(node); }

std::string list_text(const std::vector<int>& numbers) {
  os::CpuSet set;
  for (int number : numbers) set.add(static_cast<unsigned>(number));
  return set.text();
}

std::string node_heads(const Snapshot& snapshot) {
  std::string text;
  for (const auto& node : snapshot.nodes)
    text += base::format(" {:>9}", base::format("node {}", node.number));
  return text;
}

using Amount = std::string(std::uint64_t);

std::string node_columns(const Snapshot& snapshot, const BytesOn& bytes, Amount* amount) {
  std::string text;
  for (const auto& node : snapshot.nodes) text += base::format(" {:>9}", amount(on(bytes, node.number)));
  return text;
}

BytesOn sum_of(const BytesOn& one, const BytesOn& other) {
  BytesOn sum = one;
  for (auto [node, bytes] : other) sum[node] += bytes;
  return sum;
}

/// The pages of the process, and those of its region.
Share all_of(const Snapshot& snapshot, const Process& process) {
  Share share = process.own();
  for (const auto& part : snapshot.parts)
    if (part.owner >= 0 && part.owner == process.rank) share += part.share;
  return share;
}

std::string process_table(const Snapshot& snapshot) {
  // Long sets of processors would misalign the columns.
  std::size_t wide = 10;
  for (const auto& process : snapshot.processes)
    wide = std::min<std::size_t>(24, std::max(wide, process.allowed.text().size()));
  std::string text = base::format(
      "\nMemory in MiB by node; local: of the pages that are its own, or of its region, those on its node\n"
      "{:>5} {:>8} {:<{}} {:>5} {:>8}{} {:>8}\n",
      "rank", "pid", "processors", wide, "node", "pages", node_heads(snapshot), "local");
  for (const auto& process : snapshot.processes) {
    auto rank = process.rank >= 0 ? std::to_string(process.rank) : std::string("-");
    if (!process.problem.empty()) {
      text += base::format("{:>5} {:>8} {}\n", rank, process.pid, process.problem);
      continue;
    }
    std::uint64_t resident = 0;
    for (auto [node, bytes] : process.bytes_on) resident += bytes;
    text +=
        base::format("{:>5} {:>8} {:<{}} {:>5} {:>8}{} {:>8}{}\n", rank, process.pid, process.allowed.text(),
                     wide, process.node >= 0 ? std::to_string(process.node) : list_text(process.nodes),
                     resident / snapshot.page_bytes, node_columns(snapshot, process.bytes_on, mib),
                     percent_text(all_of(snapshot, process)), process.left ? "  has left its binding" : "");
  }
  if (snapshot.processes.size() > 1)
    text += base::format("{:>5} {:>8} {:<{}} {:>5} {:>8}{}\n", "all", "", "", wide, "", "",
                         node_columns(snapshot, snapshot.bytes_on(), mib));
  return text;
}

struct RoleSum {
  std::string role;
  bool owned = false;
  BytesOn bytes_on;
  Share share;
  std::uint64_t foreign = 0, not_in_core = 0, huge = 0;
};

std::string role_table(const Snapshot& snapshot) {
  if (snapshot.parts.empty()) return {};
  std::vector<RoleSum> roles;
  for (const auto& part : snapshot.parts) {
    auto same = std::find_if(roles.begin(), roles.end(), [&](auto& sum) { return sum.role == part.role; });
    if (same == roles.end())
      same = roles.insert(roles.end(), RoleSum{part.role, part.owner >= 0, {}, {}, 0, 0, 0});
    same->bytes_on = sum_of(same->bytes_on, part.bytes_on);
    same->share += part.share;
    same->foreign += part.foreign;
    same->not_in_core += part.not_in_core;
    same->huge += part.huge;
  }
  std::string text =
      base::format("\nThe job's segment in KiB by node, over all ranks; foreign: not touched by its "
                   "owner\n{:<12}{} {:>8} {:>8} {:>11} {:>9}\n",
                   "part", node_heads(snapshot), "local", "foreign", "not in core", "huge");
  BytesOn all;
  for (const auto& sum : roles) {
    all = sum_of(all, sum.bytes_on);
    text += base::format("{:<12}{} {:>8} {:>8} {:>11} {:>9}\n", sum.role,
                         node_columns(snapshot, sum.bytes_on, kib), percent_text(sum.share), kib(sum.foreign),
                         kib(sum.not_in_core), kib(sum.huge));
  }
  return text + base::format("{:<12}{}\n", "all", node_columns(snapshot, all, kib));
}

std::string range_lines(const Snapshot& snapshot, const std::vector<Range>& ranges) {
  std::string text;
  for (const auto& range : ranges)
    text += base::format("        {:#x}-{:#x}  node {}  {}{}\n", range.begin, range.end, range.node,
                         base::counted((range.end - range.begin) / snapshot.page_bytes, "page"),
                         range.wrong ? "  wrong" : "");
  return text;
}

std::string every_part(const Snapshot& snapshot) {
  std::string text;
  for (const auto& part : snapshot.parts) {
    std::string owner = part.owner >= 0 ? base::format("rank {}", part.owner) : std::string("-");
    text += base::format("\nsegment: {}, {}, meant for node {}, pages of {} KiB, {} local", owner, part.role,
                         node_name(part.node), part.page_bytes >> 10, percent_text(part.share));
    if (part.huge != 0) text += base::format(", {} KiB in huge pages", kib(part.huge));
    if (part.foreign != 0) text += base::format(", {} KiB not touched by it", kib(part.foreign));
    if (part.not_in_core != 0) text += base::format(", {} KiB not in core", kib(part.not_in_core));
    text += '\n' + range_lines(snapshot, part.ranges);
  }
  return text;
}

std::string every_mapping(const Snapshot& snapshot, const Process& process) {
  std::string text;
  for (const auto& mapping : process.mappings) {
    if (mapping.line.pages_on.empty() && mapping.not_in_core == 0) continue;
    std::string whose =
        process.rank >= 0 ? base::format("rank {}", process.rank) : base::format("process {}", process.pid);
    text +=
        base::format("\n{}: {:#x}-{:#x} {} {}{}{}, policy {}, pages of {} KiB", whose, mapping.entry.begin,
                     mapping.entry.end, mapping.entry.permissions, kind_name(mapping.kind),
                     mapping.entry.name.empty() ? "" : " ", base::printable(mapping.entry.name),
                     mapping.line.policy, mapping.line.page_bytes >> 10);
    for (auto [node, bytes] : mapping.line.bytes_on())
      text += base::format(", {} MiB on node {}", mib(bytes), node);
    if (mapping.own.judged != 0) text += base::format(", {} local", percent_text(mapping.own));
    if (mapping.copy_on_write != 0)
      text += base::format(", {} MiB copied when written", mib(mapping.copy_on_write));
    if (mapping.zeros != 0) text += base::format(", {} MiB of zeros", mib(mapping.zeros));
    if (mapping.entry.huge != 0) text += base::format(", {} MiB in huge pages", mib(mapping.entry.huge));
    if (mapping.not_in_core != 0) text += base::format(", {} MiB not in core", mib(mapping.not_in_core));
    text += '\n' + range_lines(snapshot, mapping.ranges);
  }
  return text;
}

// ---- what the ranks have sent ---------------------------------------------------------------------------

/// At most five characters: "1023", "9.5K", "640M".
std::string short_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::string_view units = "KMGTPE";
  while (value >= 1023.5 && units.size() > 1) {
    value /= 1024;
    units.remove_prefix(1);
  }
  return value < 9.95 ? base::format("{:.1f}{}", value, units[0]) : base::format("{:.0f}{}", value, units[0]);
}

std::string sent_columns(const segment::Amount& sent) {
  if (sent.messages == 0) return base::format(" {:>9} {:>6}", "-", "-");
  return base::format(" {:>9} {:>6}", sent.messages, short_bytes(sent.bytes));
}

std::string distance_table(const std::vector<Flow>& flows) {
  std::array<segment::ByPath, segment::distances> sums{};
  for (const auto& flow : flows)
    for (std::size_t path = 0; path < segment::paths; ++path)
      sums[static_cast<std::size_t>(flow.distance)][path] += flow.sent[path];
  std::string text =
      "\nSent by distance and path: messages, and bytes of payload (K, M, G: powers of 1024)\ndistance";
  for (std::size_t path = 0; path < segment::paths; ++path)
    text += base::format(" {:>16}", segment::path_name(static_cast<segment::Path>(path)));
  text += '\n';
  for (std::size_t distance = 0; distance < segment::distances; ++distance) {
    segment::Amount all;
    std::string line;
    for (const auto& sent : sums[distance]) {
      all += sent;
      line += sent_columns(sent);
    }
    auto name = segment::distance_name(static_cast<segment::Distance>(distance));
    if (all.messages != 0) text += base::format("{:<8}{}\n", name, line);
  }
  return text;
}

std::string matrix(const Snapshot& snapshot) {
  std::string text = "\nBytes sent from each rank (line) to each other\n  from  ";
  for (const auto& to : snapshot.processes) text += base::format(" {:>6}", base::format("to {}", to.rank));
  std::map<std::pair<int, int>, std::uint64_t> bytes;
  for (const auto& flow : snapshot.flows) bytes[{flow.from, flow.to}] = flow.total().bytes;
  for (const auto& from : snapshot.processes) {
    text += base::format("\n{:>6}  ", from.rank);
    for (const auto& to : snapshot.processes) {
      auto found = bytes.find({from.rank, to.rank});
      text += base::format(" {:>6}", found == bytes.end() ? "-" : short_bytes(found->second));
    }
  }
  return text + '\n';
}

std::string pair_lines(const std::vector<Flow>& flows) {
  std::string text;
  for (const auto& flow : flows) {
    auto total = flow.total();
    text += base::format("{:>6} to {:<6} {:<8}{}", flow.from, flow.to, segment::distance_name(flow.distance),
                         sent_columns(total));
    const char* before = "  ";
    for (std::size_t path = 0; path < segment::paths; ++path) {
      const auto& sent = flow.sent[path];
      if (sent.messages == 0) continue;
      text += base::format("{}{} {} in {}", before, segment::path_name(static_cast<segment::Path>(path)),
                           short_bytes(sent.bytes), sent.messages);
      before = ", ";
    }
    text += '\n';
  }
  return text;
}

std::string sent_elsewhere(const Snapshot& snapshot) {
  std::string text;
  for (const auto& process : snapshot.processes)
    if (process.sent_elsewhere.messages != 0)
      text += base::format("{:>6}  {}\n", process.rank, sent_columns(process.sent_elsewhere));
  return text.empty() ? text : "\nSent to other machines, by rank: messages, and bytes\n" + text;
}

std::string sent_here(const Snapshot& snapshot, bool all) {
  constexpr std::size_t most_ranks = 16, most_pairs = 10;
  if (snapshot.flows.empty()) return {};
  std::string text = distance_table(snapshot.flows);
  bool few = snapshot.processes.size() <= most_ranks;
  if (few) text += matrix(snapshot);
  if (all) return text + "\nEach pair: messages, bytes, and by path\n" + pair_lines(snapshot.flows);
  if (few) return text;
  auto heaviest = snapshot.flows;
  std::sort(heaviest.begin(), heaviest.end(), [](const Flow& one, const Flow& other) {
    auto order = [](const Flow& flow) {
      auto total = flow.total();
      return std::tuple(total.bytes, total.messages, -flow.from, -flow.to);
    };
    return order(one) > order(other);
  });
  heaviest.resize(std::min(heaviest.size(), most_pairs));
  return text +
         base::format("\nThe heaviest of {} pairs (--all has them all): messages, bytes, and by path\n",
                      snapshot.flows.size()) +
         pair_lines(heaviest);
}

std::string traffic(const Snapshot& snapshot, bool all) {
  if (snapshot.job.empty()) return {};
  const std::string text = sent_here(snapshot, all) + sent_elsewhere(snapshot);
  return text.empty() ? "\nNo rank has sent a message.\n" : text;
}

std::string warning_lines(const Snapshot& snapshot) {
  auto warnings = warnings_of(snapshot);
  if (warnings.empty()) {
    auto rows = rows_of(snapshot);
    return rows.empty() ? "\nNothing is bound to one node, so no page is on a wrong one.\n"
                        : "\nEvery page lies where it belongs.\n";
  }
  std::string text = "\n";
  for (const auto& warning : warnings)
    text += base::format("warning: {}\n    {}\n", warning.text, warning.advice);
  return text;
}

} // namespace

std::string text_of(const Snapshot& snapshot, bool all) {
  std::string text =
      base::format("{}: {}, {} at {} (sampled in {:.0f} ms)\n",
                   snapshot.job.empty() ? base::format("process {}", snapshot.launcher) : snapshot.job,
                   base::format("{}, {}", base::printable(snapshot.program()),
                                snapshot.job.empty() ? base::counted(snapshot.processes[0].threads, "thread")
                                                     : base::counted(snapshot.processes.size(), "rank")),
                   base::counted(snapshot.nodes.size(), "node"), snapshot.at, snapshot.took_s * 1e3);
  text += process_table(snapshot) + role_table(snapshot) + traffic(snapshot, all);
  if (all) {
    text += every_part(snapshot);
    for (const auto& process : snapshot.processes) text += every_mapping(snapshot, process);
  }
  return text + warning_lines(snapshot);
}

std::string assertion_text(const Snapshot& snapshot, double percent) {
  bool judged = false;
  auto rows = offenders(snapshot, percent, judged);
  if (!judged) return "asserted nothing: no rank is bound to one node, so no page has to lie on one\n";
  std::string text;
  for (const auto& row : rows)
    text +=
        base::format("less than {}% local: {} {}: {}\n", percent,
                     row.rank >= 0 ? base::format("rank {}", row.rank) : base::format("process {}", row.pid),
                     row.where, percent_text(row.share));
  for (const auto& process : snapshot.processes)
    if (process.unseen)
      text += base::format("not known to be local: rank {}: {}\n", process.rank, process.problem);
  return text;
}

} // namespace near::place
