#include "planning/orders.h"

#include "base/text.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace near::planning {
namespace {

std::vector<Chunk> chunks_in_order(const Units& units, unsigned threads, unsigned most) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 0; at + threads <= units.size() && chunks.size() < most; at += threads)
    chunks.emplace_back(units.begin() + static_cast<long>(at),
                        units.begin() + static_cast<long>(at + threads));
  return chunks;
}

// Distributes `ranks` over groups in proportion to their capacity, never exceeding it. The cumulative share
// of the first groups is the exact value, rounded down after `rounding` / total was added.
std::vector<unsigned> shares_rounded(const std::vector<unsigned>& capacity, unsigned ranks, unsigned total,
                                     unsigned rounding) {
  std::vector<unsigned> share(capacity.size(), 0);
  unsigned given = 0, room_before = 0;
  for (std::size_t i = 0; i < capacity.size() && total > 0; ++i) {
    room_before += capacity[i];
    auto until = static_cast<unsigned>((std::uint64_t{ranks} * room_before + rounding) / total);
    share[i] = std::min(std::max(until, given) - given, capacity[i]);
    given += share[i];
  }
  for (std::size_t i = 0; given < ranks && i < share.size(); ++i)
    while (given < ranks && share[i] < capacity[i]) ++share[i], ++given;
  return share;
}

std::vector<unsigned> shares(const std::vector<unsigned>& capacity, unsigned ranks) {
  unsigned total = 0;
  for (auto room : capacity) total += room;
  // Rounding up fills the first group first. Rounding to the nearest is used instead if it loads the
  // fullest group less.
  auto up = shares_rounded(capacity, ranks, total, total - 1);
  auto nearest = shares_rounded(capacity, ranks, total, total / 2);
  auto most = [](const std::vector<unsigned>& share) {
    return *std::max_element(share.begin(), share.end());
  };
  return most(nearest) < most(up) ? nearest : up;
}

// The units that `chunks` leave over, in order.
Units left_over(const Units& units, const std::vector<Chunk>& chunks) {
  CpuSet taken;
  for (const auto& chunk : chunks)
    for (const auto& unit : chunk) taken = taken | unit.cpus;
  Units left;
  for (const auto& unit : units)
    if ((unit.cpus & taken).empty()) left.push_back(unit);
  return left;
}

// Adds ranks that fit into no single group, from the units that the others leave over.
void add_across(const Units& units, unsigned threads, unsigned ranks, std::vector<Chunk>& chunks) {
  if (chunks.size() >= ranks) return;
  auto missing = ranks - static_cast<unsigned>(chunks.size());
  for (auto& chunk : chunks_in_order(left_over(units, chunks), threads, missing))
    chunks.push_back(std::move(chunk));
  std::sort(chunks.begin(), chunks.end(),
            [](const Chunk& one, const Chunk& other) { return comes_before(one.front(), other.front()); });
}

// Joins neighbouring groups until each has enough units for one rank.
std::vector<Units> joined(const std::vector<Units>& groups, unsigned threads) {
  std::vector<Units> wider;
  for (const auto& group : groups) {
    if (wider.empty() || wider.back().size() >= threads) wider.emplace_back();
    wider.back().insert(wider.back().end(), group.begin(), group.end());
  }
  if (!wider.empty() && wider.back().size() < threads) wider.pop_back();
  return wider;
}

// Distributes ranks over the groups of each level in proportion to their cores, from the largest level
// down. A rank spans two groups only if no group has room for it, and then shares them with other ranks
// only if there are not enough groups.
std::vector<Chunk> spread(const Units& units, unsigned threads, unsigned ranks, Level level) {
  if (level < Level::core || ranks == 0) return chunks_in_order(units, threads, ranks);
  auto below = static_cast<Level>(static_cast<int>(level) - 1);
  auto groups = grouped(units, level);
  std::vector<unsigned> capacity;
  unsigned total = 0;
  auto count = [&] {
    capacity.clear();
    for (const auto& group : groups) capacity.push_back(capacity_of(group, threads));
    total = std::accumulate(capacity.begin(), capacity.end(), 0u);
  };
  count();
  if (total == 0 && level >= Level::l3)
    if (auto wider = joined(groups, threads); wider.size() >= ranks) groups = std::move(wider), count();
  auto share = total > ranks ? shares(capacity, ranks) : capacity;
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (auto& chunk : spread(groups[i], threads, share[i], below)) chunks.push_back(std::move(chunk));
  add_across(units, threads, ranks, chunks);
  return chunks;
}

// Puts the chunks of the rows into the order of ranks.
std::vector<Chunk> ranked(const std::vector<std::vector<Chunk>>& rows, bool span) {
  std::vector<Chunk> chunks;
  if (!span)
    for (const auto& row : rows) chunks.insert(chunks.end(), row.begin(), row.end());
  for (std::size_t turn = 0; span; ++turn) {
    std::size_t before = chunks.size();
    for (const auto& row : rows)
      if (turn < row.size()) chunks.push_back(row[turn]);
    if (chunks.size() == before) break;
  }
  return chunks;
}

} // namespace

std::vector<Chunk> packed(const Units& units, unsigned threads, unsigned ranks) {
  if (threads == 1) return chunks_in_order(units, threads, ranks);
  std::vector<Chunk> chunks;
  for (const auto& group : grouped(units, Level::numa))
    for (auto& chunk : chunks_in_order(group, threads, ranks - static_cast<unsigned>(chunks.size())))
      chunks.push_back(std::move(chunk));
  add_across(units, threads, ranks, chunks);
  return chunks;
}

std::vector<Chunk> spread_by_speed(const Units& units, unsigned threads, unsigned ranks) {
  std::map<std::pair<unsigned, unsigned>, Units> by_worth; // (hardware thread of its core, slowness)
  unsigned fastest = 0, sibling = 0;
  for (const auto& unit : units) fastest = std::max(fastest, unit.core->speed);
  for (std::size_t i = 0; i < units.size(); ++i) {
    sibling = threads == 1 && fastest > 0 && i > 0 && units[i - 1].core == units[i].core ? sibling + 1 : 0;
    by_worth[{sibling, fastest - units[i].core->speed}].push_back(units[i]);
  }
  std::vector<Chunk> chunks;
  Units group; // if too few cores are this fast for a rank, slower ones join them
  for (const auto& [worth, more] : by_worth) {
    group.insert(group.end(), more.begin(), more.end());
    auto missing = ranks - static_cast<unsigned>(chunks.size());
    auto share = std::min(missing, capacity_of(group, threads));
    if (share == 0) continue;
    for (auto& chunk : spread(group, threads, share, Level::package)) chunks.push_back(std::move(chunk));
    group.clear();
  }
  if (chunks.size() < ranks)
    for (auto& chunk :
         chunks_in_order(left_over(units, chunks), threads, ranks - static_cast<unsigned>(chunks.size())))
      chunks.push_back(std::move(chunk));
  return chunks;
}

std::vector<Chunk> round_robin(const Units& units, unsigned threads, unsigned ranks, Level level,
                               Ranking ranking) {
  auto groups = grouped(units, level);
  std::vector<unsigned> share(groups.size(), 0);
  for (unsigned given = 0, before = 0; given < ranks; before = given) {
    for (std::size_t i = 0; i < groups.size() && given < ranks; ++i)
      if (share[i] < capacity_of(groups[i], threads)) ++share[i], ++given;
    if (given == before) break;
  }
  // From packages down, whatever the domain is, since some caches span several nodes.
  std::vector<std::vector<Chunk>> rows;
  for (std::size_t i = 0; i < groups.size(); ++i)
    rows.push_back(spread(groups[i], threads, share[i], Level::package));
  return ranked(rows, ranking != Ranking::fill);
}

std::vector<Chunk> ppr(const Units& units, unsigned threads, unsigned ranks, Level level, unsigned per_domain,
                       Ranking ranking) {
  std::vector<std::vector<Chunk>> rows;
  unsigned given = 0;
  for (const auto& group : grouped(units, level)) {
    auto row = spread(group, threads, std::min(per_domain, capacity_of(group, threads)), Level::package);
    if (row.empty()) row.push_back(group);
    rows.emplace_back();
    for (unsigned i = 0; i < per_domain && given < ranks; ++i, ++given)
      rows.back().push_back(row[i * row.size() / per_domain]);
  }
  return ranked(rows, ranking == Ranking::span);
}

Result chosen_nics(const Machine& machine, const std::string& name, std::vector<Device>& nics) {
  std::vector<Device> all;
  for (const auto& nic : machine.devices)
    if (nic.kind == Device::Kind::nic) all.push_back(nic);
  if (all.empty())
    return base::fail(base::Code::unsupported, "--map-by nic: no NIC of this machine is visible");
  nics = machine.nics();
  if (name.empty()) return {};
  std::vector<std::string_view> names;
  std::string list;
  nics.clear();
  for (const auto& nic : all) {
    if (nic.name == name) nics = {nic};
    names.push_back(nic.name);
    list += (list.empty() ? "" : ", ") + nic.name;
  }
  if (!nics.empty()) return {};
  return base::fail(base::Code::invalid, "--map-by nic={}: the NICs of this machine are {}{}", name, list,
                    base::did_you_mean(name, names));
}

std::vector<Chunk> by_nic(const Machine& machine, const std::vector<Device>& nics, const Units& units,
                          unsigned threads, unsigned ranks) {
  std::vector<std::vector<Units>> orders;
  for (const auto& nic : nics) {
    unsigned home = 0;
    for (const auto& core : machine.cores)
      if (!(core.cpus & nic.near).empty()) {
        home = core.numa;
        break;
      }
    auto groups = grouped(units, Level::numa);
    std::sort(groups.begin(), groups.end(), [&](const Units& one, const Units& other) {
      auto far = [&](const Units& group) {
        bool near = !(group.front().core->cpus & nic.near).empty();
        return std::tuple(!near, machine.distance(home, group.front().core->numa), group.front().core->index);
      };
      return far(one) < far(other);
    });
    orders.push_back(std::move(groups));
  }
  std::vector<Chunk> chunks;
  CpuSet taken;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    Chunk chunk, across; // from one node; from several
    for (const auto& group : orders[rank % orders.size()]) {
      chunk.clear();
      for (const auto& unit : group) {
        if (!(unit.cpus & taken).empty()) continue;
        if (chunk.size() < threads) chunk.push_back(unit);
        if (across.size() < threads) across.push_back(unit);
      }
      if (chunk.size() == threads) break;
    }
    if (chunk.size() < threads) chunk = std::move(across);
    if (chunk.size() < threads) return chunks;
    for (const auto& unit : chunk) taken = taken | unit.cpus;
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

Result rankfile(const Machine& machine, const Units& cores, const Request& request,
                std::vector<Chunk>& chunks) {
  for (unsigned rank = 0; rank < request.ranks; ++rank) {
    std::size_t at = request.rankfile_repeats ? rank % request.rankfile.size() : rank;
    if (at >= request.rankfile.size() || !request.rankfile[at].given)
      return base::fail(base::Code::invalid, "{}: rank {} is missing there", request.rankfile_name, rank);
    const auto& entry = request.rankfile[at];
    Chunk chunk;
    CpuSet found;
    unsigned position = 0; // within the package
    for (const auto& core : machine.cores) {
      if (entry.package >= 0 && core.package != static_cast<unsigned>(entry.package)) continue;
      unsigned number = entry.package >= 0 ? position++ : core.index;
      auto unit =
          std::find_if(cores.begin(), cores.end(), [&](const Unit& each) { return each.core == &core; });
      if (unit == cores.end()) continue;
      CpuSet cpus = entry.by_cpu ? unit->cpus & entry.numbers : unit->cpus;
      if (cpus.empty() || (!entry.by_cpu && !entry.numbers.has(number))) continue;
      chunk.push_back({cpus, &core});
      if (entry.by_cpu)
        found = found | cpus;
      else
        found.add(number);
    }
    for (unsigned number : entry.numbers.members())
      if (!found.has(number))
        return base::fail(base::Code::invalid,
                          "{}{}: rank {}: there is no {} {}{} here, or it may not be used",
                          request.rankfile_name, entry.line == 0 ? "" : base::format(":{}", entry.line), rank,
                          entry.by_cpu ? "processor" : "core", number,
                          entry.package >= 0 ? base::format(" of package {}", entry.package) : "");
    chunks.push_back(std::move(chunk));
  }
  return {};
}

} // namespace near::planning
