// See job.h.
#include "model/job.h"

#include "base/text.h"
#include "planning/plan.h"
#include "topo/nearest.h"
#include "topo/slots.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

namespace near::model {
namespace {

bool read_count(std::string_view text, int most, int& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0 && value <= most;
}

Result refuse(std::string_view text) {
  return base::fail(base::Code::invalid,
                    "--machines: '{}' is not a list of machines such as 64 (machines), 64x8 (with 8 ranks "
                    "each), 4,4,2 (the "
                    "ranks of each) or 2x8:FILE",
                    text);
}

/// One entry of the list: [COUNTx]RANKS[:FILE].
Result parse_entry(std::string_view entry, std::string_view whole, MachineKind& kind) {
  const auto colon = std::min(entry.find(':'), entry.size());
  if (colon < entry.size()) {
    kind.file = entry.substr(colon + 1);
    if (kind.file.empty()) return refuse(whole);
  }
  std::string_view numbers = entry.substr(0, colon);
  if (const auto by = numbers.find('x'); by != std::string_view::npos) {
    if (!read_count(numbers.substr(0, by), most_ranks, kind.count)) return refuse(whole);
    numbers.remove_prefix(by + 1);
  }
  return read_count(numbers, most_ranks_each, kind.ranks) ? Result{} : refuse(whole);
}

/// `count` machines without a description, with `ranks` ranks in total.
Result distribute(int count, unsigned ranks, std::vector<MachineKind>& kinds) {
  const auto machines = static_cast<unsigned>(count);
  if (ranks < machines)
    return base::fail(base::Code::invalid, "--ranks: {} for {} leaves some without any",
                      base::counted(ranks, "rank"), base::counted(machines, "machine"));
  if (ranks / machines >= static_cast<unsigned>(most_ranks_each) || ranks > static_cast<unsigned>(most_ranks))
    return base::fail(base::Code::invalid, "--machines: at most {} ranks, and {} on one machine, are shown",
                      most_ranks, most_ranks_each);
  const int each = static_cast<int>(ranks / machines), more = static_cast<int>(ranks % machines);
  if (more > 0) kinds.push_back({.count = more, .ranks = each + 1, .file = {}});
  kinds.push_back({.count = count - more, .ranks = each, .file = {}});
  return {};
}

} // namespace

Result parse_machines(const MachinesRequest& request, std::vector<MachineKind>& kinds) {
  std::string_view rest = request.text;
  if (int count = 0; read_count(rest, most_ranks, count)) { // a number alone
    if (count < 2) return base::fail(base::Code::invalid, "--machines: there must be at least two machines");
    return distribute(
        count, request.ranks != 0 ? request.ranks : static_cast<unsigned>(count) * request.ranks_each, kinds);
  }
  if (request.ranks != 0)
    return base::fail(base::Code::invalid, "--ranks: --machines {} already says how many ranks there are",
                      base::printable(request.text));
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    MachineKind kind;
    NEAR_TRY(parse_entry(rest.substr(0, comma), request.text, kind));
    const bool repeats = !kinds.empty() && kinds.back().ranks == kind.ranks && kinds.back().file == kind.file;
    if (repeats)
      kinds.back().count += kind.count;
    else
      kinds.push_back(std::move(kind));
    if (comma + 1 == rest.size()) return refuse(request.text);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (kinds.empty()) return refuse(request.text);
  std::int64_t machines = 0, ranks = 0;
  for (const MachineKind& kind : kinds)
    machines += kind.count, ranks += std::int64_t{kind.count} * kind.ranks;
  if (machines < 2) return base::fail(base::Code::invalid, "--machines: there must be at least two machines");
  if (ranks > most_ranks)
    return base::fail(base::Code::invalid, "--machines: at most {} ranks, and {} on one machine, are shown",
                      most_ranks, most_ranks_each);
  return {};
}

std::vector<std::uint32_t> machine_of_ranks(const std::vector<MachineKind>& kinds, bool in_turns) {
  std::vector<int> left;
  for (const MachineKind& kind : kinds)
    left.insert(left.end(), static_cast<std::size_t>(kind.count), kind.ranks);
  const int ranks = std::accumulate(left.begin(), left.end(), 0);
  std::vector<std::uint32_t> machine_of;
  machine_of.reserve(static_cast<std::size_t>(ranks));
  while (machine_of.size() < static_cast<std::size_t>(ranks))
    for (std::uint32_t machine = 0; machine < left.size(); ++machine) {
      int& here = left[machine];
      const int now = in_turns ? std::min(here, 1) : here;
      machine_of.insert(machine_of.end(), static_cast<std::size_t>(now), machine);
      here -= now;
    }
  return machine_of;
}

std::string machines_text(const std::vector<MachineKind>& kinds) {
  unsigned machines = 0;
  std::string list;
  for (const MachineKind& kind : kinds) {
    machines += static_cast<unsigned>(kind.count);
    if (!list.empty()) list += &kind == &kinds.back() ? " and " : ", ";
    list += kinds.size() == 1 ? base::counted(static_cast<unsigned>(kind.ranks), "rank") + " each"
                              : base::format("{} x {}", kind.count,
                                             base::counted(static_cast<unsigned>(kind.ranks), "rank"));
  }
  return base::counted(machines, "machine") + (kinds.size() == 1 ? " with " : ": ") + list;
}

Result place_on(const MachineKind& kind, Placement& placement) {
  const auto ranks = static_cast<std::size_t>(kind.ranks);
  placement = {.distances = std::vector<std::uint32_t>(ranks),
               .nics = std::vector<std::string>(ranks),
               .nodes = std::vector<unsigned>(ranks),
               .node_count = 1};
  if (kind.file.empty()) return {};
  topo::Machine machine;
  NEAR_TRY(topo::machine_from_file(kind.file, machine));
  planning::Request request;
  request.ranks = static_cast<unsigned>(kind.ranks);
  planning::Plan plan;
  const topo::Slots slots = topo::slots_of_recorded(machine);
  NEAR_TRY(planning::make_plan(machine, slots, request, plan));
  if (plan.oversubscribed)
    return base::fail(base::Code::invalid, "--machines: {} has {} for {}", base::printable(kind.file),
                      base::counted(slots.count, "processor"), base::counted(request.ranks, "rank"));
  std::set<unsigned> nodes;
  for (std::size_t row = 0; row < ranks; ++row) {
    placement.nodes[row] = plan.bindings[row].node;
    nodes.insert(plan.bindings[row].node);
  }
  placement.node_count = static_cast<unsigned>(nodes.size());
  if (machine.numas < 2) return {}; // the library does not know distances in this case either (os/nic.h)
  for (const topo::Device& nic : machine.nics()) {
    const std::vector<std::uint32_t> distances = planning::distances_to(machine, nic, plan);
    for (std::size_t row = 0; row < ranks; ++row) {
      const bool nearer = placement.distances[row] == 0 || distances[row] < placement.distances[row];
      if (distances[row] == 0 || !nearer) continue;
      placement.distances[row] = distances[row];
      placement.nics[row] = nic.name;
    }
  }
  return {};
}

Result imagine(std::vector<MachineKind> kinds, bool in_turns, unsigned nodes, std::optional<Job>& job) {
  const std::vector<std::uint32_t> machine_of = machine_of_ranks(kinds, in_turns);
  std::vector<Placement> placements;
  std::vector<std::size_t> kind_of;
  for (const MachineKind& kind : kinds) {
    Placement placement;
    NEAR_TRY(place_on(kind, placement));
    if (kind.file.empty()) placement.node_count = std::clamp(nodes, 1u, static_cast<unsigned>(kind.ranks));
    kind_of.insert(kind_of.end(), static_cast<std::size_t>(kind.count), placements.size());
    placements.push_back(std::move(placement));
  }
  pattern::Machines machines(machine_of, 0);
  std::vector<int> leaders;
  for (int machine = 0; machine < machines.count(); ++machine) {
    const Placement& placement = placements[kind_of[static_cast<std::size_t>(machine)]];
    leaders.push_back(machines.ranks_of(machine)[topo::nearest(placement.distances)]);
  }
  machines.set_leaders(std::move(leaders));
  job.emplace(Job{std::move(kinds), std::move(placements), std::move(kind_of), std::move(machines)});
  return {};
}

} // namespace near::model
