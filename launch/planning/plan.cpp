#include "planning/plan.h"

#include "base/text.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

namespace near::planning {
namespace {

// A core, or one hardware thread of it, as far as it may be used.
struct Unit {
  CpuSet cpus;
  const Core* core = nullptr;
};
using Units = std::vector<Unit>;
// The units of one rank.
using Chunk = Units;

// The machine's order of units.
bool comes_before(const Unit& one, const Unit& other) {
  return std::pair(one.core->index, one.cpus.first()) < std::pair(other.core->index, other.cpus.first());
}

unsigned domain_of(const Core& core, Level level) {
  switch (level) {
  case Level::hwthread:
  case Level::core: return core.index;
  case Level::l2: return core.l2;
  case Level::l3: return core.l3;
  case Level::numa: return core.numa;
  case Level::package: return core.package;
  case Level::machine: break;
  }
  return 0;
}

Units usable_units(const Machine& machine, const CpuSet& allowed, bool hwthreads) {
  Units units;
  for (const auto& core : machine.cores) {
    CpuSet cpus = core.cpus & allowed;
    if (cpus.empty()) continue;
    if (!hwthreads) {
      units.push_back({cpus, &core});
      continue;
    }
    for (unsigned cpu : cpus.members()) {
      CpuSet one;
      one.add(cpu);
      units.push_back({one, &core});
    }
  }
  return units;
}

// The units by domain, in order of first appearance.
std::vector<Units> grouped(const Units& units, Level level) {
  std::map<unsigned, std::size_t> position;
  std::vector<Units> groups;
  for (const auto& unit : units) {
    auto [at, fresh] = position.try_emplace(domain_of(*unit.core, level), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(unit);
  }
  return groups;
}

std::vector<Chunk> chunks_in_order(const Units& units, unsigned threads, unsigned most) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 0; at + threads <= units.size() && chunks.size() < most; at += threads)
    chunks.emplace_back(units.begin() + static_cast<long>(at),
                        units.begin() + static_cast<long>(at + threads));
  return chunks;
}

// Shares `ranks` among groups in proportion to how many each can hold, never more than that. What the groups
// up to any one get together is their exact part, with `rounding` / total added before it is cut.
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
  // Rounded up, the first group is used first. To the nearest, it is not loaded more than others for that.
  auto up = shares_rounded(capacity, ranks, total, total - 1);
  auto nearest = shares_rounded(capacity, ranks, total, total / 2);
  auto most = [](const std::vector<unsigned>& share) {
    return *std::max_element(share.begin(), share.end());
  };
  return most(nearest) < most(up) ? nearest : up;
}

// How many ranks find all their cores within one group.
unsigned capacity_of(const Units& group, unsigned threads) {
  return static_cast<unsigned>(group.size()) / threads;
}

// What `chunks` leave over of `units`, in order.
Units left_over(const Units& units, const std::vector<Chunk>& chunks) {
  CpuSet taken;
  for (const auto& chunk : chunks)
    for (const auto& unit : chunk) taken = taken | unit.cpus;
  Units left;
  for (const auto& unit : units)
    if ((unit.cpus & taken).empty()) left.push_back(unit);
  return left;
}

// Adds the ranks that no single group has room for, of what the others leave over.
void add_across(const Units& units, unsigned threads, unsigned ranks, std::vector<Chunk>& chunks) {
  if (chunks.size() >= ranks) return;
  auto missing = ranks - static_cast<unsigned>(chunks.size());
  for (auto& chunk : chunks_in_order(left_over(units, chunks), threads, missing))
    chunks.push_back(std::move(chunk));
  std::sort(chunks.begin(), chunks.end(),
            [](const Chunk& one, const Chunk& other) { return comes_before(one.front(), other.front()); });
}

// One core after the other. A rank lies across two nodes only where no node has room for the whole of it.
std::vector<Chunk> packed(const Units& units, unsigned threads, unsigned ranks) {
  if (threads == 1) return chunks_in_order(units, threads, ranks);
  std::vector<Chunk> chunks;
  for (const auto& group : grouped(units, Level::numa))
    for (auto& chunk : chunks_in_order(group, threads, ranks - static_cast<unsigned>(chunks.size())))
      chunks.push_back(std::move(chunk));
  add_across(units, threads, ranks, chunks);
  return chunks;
}

// Neighbouring groups put together, as many as one rank needs.
std::vector<Units> joined(const std::vector<Units>& groups, unsigned threads) {
  std::vector<Units> wider;
  for (const auto& group : groups) {
    if (wider.empty() || wider.back().size() >= threads) wider.emplace_back();
    wider.back().insert(wider.back().end(), group.begin(), group.end());
  }
  if (!wider.empty() && wider.back().size() < threads) wider.pop_back();
  return wider;
}

// Shares ranks among the groups of each level in proportion to their cores, from the largest down. A rank
// lies across two groups only where no group has room for the whole of it, and then beside other ranks only
// where there are not enough groups.
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

// Unlike cores: the faster ones are taken first, since a program waits for its slowest rank; but a core's
// second hardware thread is worth less than any core.
std::vector<Chunk> spread_by_speed(const Units& units, unsigned threads, unsigned ranks) {
  std::map<std::pair<unsigned, unsigned>, Units> by_worth; // (hardware thread of its core, slowness)
  unsigned fastest = 0, place = 0;
  for (const auto& unit : units) fastest = std::max(fastest, unit.core->speed);
  for (std::size_t i = 0; i < units.size(); ++i) {
    place = threads == 1 && fastest > 0 && i > 0 && units[i - 1].core == units[i].core ? place + 1 : 0;
    by_worth[{place, fastest - units[i].core->speed}].push_back(units[i]);
  }
  std::vector<Chunk> chunks;
  Units group; // faster cores that are too few for any rank go together with slower ones
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

// The rows' places in the order of ranks.
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

std::vector<Chunk> dealt(const Units& units, unsigned threads, unsigned ranks, Level level, Ranking ranking) {
  auto groups = grouped(units, level);
  std::vector<unsigned> share(groups.size(), 0);
  for (unsigned given = 0, before = 0; given < ranks; before = given) {
    for (std::size_t i = 0; i < groups.size() && given < ranks; ++i)
      if (share[i] < capacity_of(groups[i], threads)) ++share[i], ++given;
    if (given == before) break;
  }
  // From packages down, whatever the domain is: some caches hold several nodes.
  std::vector<std::vector<Chunk>> rows;
  for (std::size_t i = 0; i < groups.size(); ++i)
    rows.push_back(spread(groups[i], threads, share[i], Level::package));
  return ranked(rows, ranking != Ranking::fill);
}

std::vector<Chunk> filled(const Units& units, unsigned threads, unsigned ranks, Level level,
                          unsigned per_domain, Ranking ranking) {
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

// Fails when there is no card, or none of that name.
Result chosen_cards(const Machine& machine, const std::string& name, std::vector<Card>& cards) {
  std::vector<Card> all;
  for (const auto& card : machine.cards)
    if (card.kind == Card::Kind::network) all.push_back(card);
  if (all.empty())
    return base::fail(base::Code::unsupported, "--map-by nic: no network card of this machine can be seen");
  cards = machine.network_cards();
  if (name.empty()) return {};
  std::vector<std::string_view> names;
  std::string list;
  cards.clear();
  for (const auto& card : all) {
    if (card.name == name) cards = {card};
    names.push_back(card.name);
    list += (list.empty() ? "" : ", ") + card.name;
  }
  if (!cards.empty()) return {};
  return base::fail(base::Code::invalid, "--map-by nic={}: the machine's cards are {}{}", name, list,
                    base::did_you_mean(name, names));
}

// For each card the nodes from the nearest on; ranks take cores there, one rank to each card in turn.
std::vector<Chunk> by_card(const Machine& machine, const std::vector<Card>& cards, const Units& units,
                           unsigned threads, unsigned ranks) {
  std::vector<std::vector<Units>> orders;
  for (const auto& card : cards) {
    unsigned home = 0;
    for (const auto& core : machine.cores)
      if (!(core.cpus & card.near).empty()) {
        home = core.numa;
        break;
      }
    auto groups = grouped(units, Level::numa);
    std::sort(groups.begin(), groups.end(), [&](const Units& one, const Units& other) {
      auto far = [&](const Units& group) {
        bool near = !(group.front().core->cpus & card.near).empty();
        return std::tuple(!near, machine.distance(home, group.front().core->numa), group.front().core->index);
      };
      return far(one) < far(other);
    });
    orders.push_back(std::move(groups));
  }
  std::vector<Chunk> chunks;
  CpuSet taken;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    Chunk chunk, across; // of one node, of several
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

// The places that a rank file gives.
Result listed_chunks(const Machine& machine, const Units& cores, const Request& request,
                     std::vector<Chunk>& chunks) {
  for (unsigned rank = 0; rank < request.ranks; ++rank) {
    std::size_t at = request.listed_repeats ? rank % request.listed.size() : rank;
    if (at >= request.listed.size() || !request.listed[at].given)
      return base::fail(base::Code::invalid, "{}: nothing there gives rank {} a place", request.rank_file,
                        rank);
    const auto& listed = request.listed[at];
    Chunk chunk;
    CpuSet found;
    unsigned position = 0; // within the package
    for (const auto& core : machine.cores) {
      if (listed.package >= 0 && core.package != static_cast<unsigned>(listed.package)) continue;
      unsigned number = listed.package >= 0 ? position++ : core.index;
      auto unit =
          std::find_if(cores.begin(), cores.end(), [&](const Unit& each) { return each.core == &core; });
      if (unit == cores.end()) continue;
      CpuSet cpus = listed.by_cpu ? unit->cpus & listed.numbers : unit->cpus;
      if (cpus.empty() || (!listed.by_cpu && !listed.numbers.has(number))) continue;
      chunk.push_back({cpus, &core});
      if (listed.by_cpu)
        found = found | cpus;
      else
        found.add(number);
    }
    for (unsigned number : listed.numbers.members())
      if (!found.has(number))
        return base::fail(base::Code::invalid,
                          "{}{}: rank {}: there is no {} {}{} here, or it may not be used", request.rank_file,
                          listed.line == 0 ? "" : base::format(":{}", listed.line), rank,
                          listed.by_cpu ? "processor" : "core", number,
                          listed.package >= 0 ? base::format(" of package {}", listed.package) : "");
    chunks.push_back(std::move(chunk));
  }
  return {};
}

CpuSet cpus_of(const Units& units) {
  CpuSet all;
  for (const auto& unit : units) all = all | unit.cpus;
  return all;
}

std::string cpus_text(const CpuSet& cpus) { return (cpus.count() == 1 ? "cpu " : "cpus ") + cpus.text(); }

// "node 0"; "nodes 0,1" where a rank's cores do not fit one.
std::string nodes_text(const Machine& machine, const Chunk& chunk) {
  CpuSet numbers;
  for (const auto& unit : chunk) {
    unsigned numa = unit.core->numa;
    numbers.add(numa < machine.nodes.size() ? machine.nodes[numa].number : numa);
  }
  return (numbers.count() == 1 ? "node " : "nodes ") + numbers.text();
}

std::string place_text(const Machine& machine, const Chunk& chunk, const Units& all, const Request& request,
                       Place& place) {
  const Core& first = *chunk.front().core;
  place.node = first.numa;
  place.home = cpus_of(chunk);
  std::string node = nodes_text(machine, chunk);
  if (!request.bind) return base::format("not bound ({})", cpus_text(cpus_of(all)));
  switch (request.bind_to) {
  case Level::hwthread:
  case Level::core: {
    place.cpus = cpus_of(chunk);
    CpuSet cores;
    for (const auto& unit : chunk) cores.add(unit.core->index);
    const char* word = cores.count() == 1 ? "core" : "cores";
    return base::format("{} {} ({}), {}", word, cores.text(), cpus_text(place.cpus), node);
  }
  default: break;
  }
  CpuSet numbers; // of the domains that it has cores of
  for (const auto& unit : chunk) numbers.add(domain_of(*unit.core, request.bind_to));
  Units domain;
  for (const auto& unit : all)
    if (numbers.has(domain_of(*unit.core, request.bind_to))) domain.push_back(unit);
  place.cpus = cpus_of(domain);
  if (request.bind_to != Level::machine) node = nodes_text(machine, domain);
  if (request.bind_to == Level::l2)
    return base::format("L2 {} ({}), {}", numbers.text(), cpus_text(place.cpus), node);
  if (request.bind_to == Level::l3)
    return base::format("L3 {} ({}), {}", numbers.text(), cpus_text(place.cpus), node);
  if (request.bind_to == Level::package)
    return base::format("{} {} ({}), first core on {}", numbers.count() == 1 ? "package" : "packages",
                        numbers.text(), cpus_text(place.cpus), nodes_text(machine, {chunk.front()}));
  if (request.bind_to == Level::machine) return base::format("the machine ({})", cpus_text(place.cpus));
  return base::format("{} ({})", node, cpus_text(place.cpus));
}

// Whether each rank gets units of its own. Nearly full domains may stand beside empty ones where they are
// filled.
bool has_room(const Units& units, const Request& request) {
  if (request.order != Order::filled) return std::uint64_t{request.ranks} * request.threads <= units.size();
  unsigned left = request.ranks;
  for (const auto& group : grouped(units, request.domain)) {
    unsigned here = std::min(left, request.per_domain);
    if (capacity_of(group, request.threads) < here) return false;
    left -= here;
  }
  return true;
}

// Whether two ranks share a processor.
bool overlap(const std::vector<Chunk>& chunks) {
  CpuSet taken;
  for (const auto& chunk : chunks)
    for (const auto& unit : chunk) {
      if (!(unit.cpus & taken).empty()) return true;
      taken = taken | unit.cpus;
    }
  return false;
}

const char* order_reason(Order order) {
  return order == Order::packed ? "neighbouring cores"
                                : "neighbours in blocks over packages, nodes and caches";
}

} // namespace

Result make_plan(const Machine& machine, const Slots& slots, const Request& asked, Plan& plan) {
  Request request = asked;
  Plan made;
  made.oversubscribed = std::uint64_t{request.ranks} * request.threads > slots.count;
  request.threads = std::max(request.threads, 1u);

  Units units = usable_units(machine, slots.allowed, request.by_hwthread);
  if (units.empty())
    return base::fail(base::Code::limit, "none of the machine's processors ({}) is in the allowed set ({})",
                      machine.cpus().text(), slots.allowed.text());
  bool loose = false; // more threads are to be expected than there are cores for
  if (request.expected_threads > 1 && !request.threads_chosen && request.order != Order::listed) {
    auto expected = std::uint64_t{request.ranks} * request.expected_threads;
    loose = expected > std::min<std::uint64_t>(units.size(), slots.count);
    // Too few: then its part of them each.
    auto part = std::max(static_cast<unsigned>(units.size()) / request.ranks, 1u);
    request.threads = loose ? std::min(part, request.expected_threads) : request.expected_threads;
    made.notes.push_back(base::format("threads: {}{}", request.expected_by,
                                      loose ? " for each rank are more than there are cores" : ""));
  }
  auto wanted = std::uint64_t{request.ranks} * request.threads;
  if (!has_room(units, request) && !request.by_hwthread && request.order != Order::listed) {
    Units threads = usable_units(machine, slots.allowed, true);
    bool bound_to_cores = asked.bind_chosen && asked.bind && asked.bind_to == Level::core;
    if (has_room(threads, request) && !bound_to_cores) {
      units = std::move(threads);
      made.notes.push_back(base::format(
          "{} too few for {}: ranks take single hardware threads",
          request.order == Order::filled
              ? base::format("the cores of each {} are", level_name(request.domain))
              : base::format("{} cores are", machine.cores.size()),
          request.order == Order::filled ? std::uint64_t{request.per_domain} * request.threads : wanted));
      if (!request.bind_chosen) request.bind_to = Level::hwthread;
    }
  }
  bool crowded = !has_room(units, request) && request.order != Order::listed;
  request.threads = std::min(request.threads, static_cast<unsigned>(units.size()));
  auto room = static_cast<unsigned>(units.size()) / request.threads;
  unsigned positions = std::min(request.ranks, room);

  bool automatic = request.order == Order::automatic;
  if (automatic) request.order = request.ranks <= 2 && request.threads == 1 ? Order::packed : Order::spread;
  std::vector<Chunk> chunks;
  switch (request.order) {
  case Order::automatic:
  case Order::packed:
    if (automatic && machine.unlike_cores)
      std::sort(units.begin(), units.end(), [](const Unit& one, const Unit& other) {
        return one.core->speed != other.core->speed ? one.core->speed > other.core->speed
                                                    : comes_before(one, other);
      });
    chunks = packed(units, request.threads, positions);
    break;
  case Order::spread: chunks = spread_by_speed(units, request.threads, positions); break;
  case Order::dealt:
    chunks = dealt(units, request.threads, positions, request.domain, request.ranking);
    break;
  case Order::by_card: {
    std::vector<Card> cards;
    NEAR_TRY(chosen_cards(machine, request.card, cards));
    chunks = by_card(machine, cards, units, request.threads, positions);
    break;
  }
  case Order::listed:
    NEAR_TRY(listed_chunks(machine, usable_units(machine, slots.allowed, false), request, chunks));
    break;
  case Order::filled: {
    auto domains = grouped(units, request.domain).size();
    if (domains * request.per_domain < request.ranks)
      return base::fail(base::Code::limit, "--map-by ppr:{}:{} has room for {} ({}), not for {}",
                        request.per_domain, level_name(request.domain),
                        base::counted(domains * request.per_domain, "rank"), base::counted(domains, "domain"),
                        request.ranks);
    chunks =
        filled(units, request.threads, request.ranks, request.domain, request.per_domain, request.ranking);
    break;
  }
  }
  // Domains smaller than a rank's threads give no chunk: then neighbours, across domains.
  if (chunks.size() < positions && request.order != Order::listed)
    chunks = packed(units, request.threads, positions);

  if (crowded && !request.bind_chosen) {
    bool several = grouped(units, Level::numa).size() > 1;
    request.bind = several;
    request.bind_to = Level::numa;
    bool filled = request.order == Order::filled;
    made.notes.push_back(base::format(
        "{} of {} on {}: {}, because a rank that waits would keep the one that shares its core from running",
        base::counted(filled ? request.per_domain : request.ranks, "rank"),
        base::counted(request.threads, "thread"),
        filled ? base::format("each {}", level_name(request.domain))
               : base::counted(cpus_of(units).count(), "processor"),
        several ? "each is bound to a NUMA node only" : "none is bound"));
  } else if (request.bind && request.bind_to <= Level::core &&
             (crowded || (request.order == Order::listed && overlap(chunks)))) {
    made.notes.push_back(
        "several ranks share a core as asked for: one that waits keeps the other from running");
  }
  auto narrow = [&](const Chunk& chunk) { return cpus_of(chunk).count() < request.expected_threads; };
  if (loose && !crowded && !request.bind_chosen && std::any_of(chunks.begin(), chunks.end(), narrow)) {
    // Threads of a rank on one core would be far slower than threads that move.
    request.bind = grouped(units, Level::numa).size() > 1;
    request.bind_to = Level::numa;
  }
  if (request.order == Order::by_card)
    made.notes.push_back(
        base::format("order: nearest to {} first", request.card.empty() ? "a network card" : request.card));
  else if (request.order == Order::listed)
    made.notes.push_back(base::format("order: as {} says", request.rank_file));
  else if (request.order == Order::dealt)
    made.notes.push_back(
        base::format("order: one rank to each {} in turn{}", level_name(request.domain),
                     request.ranking == Ranking::fill ? ", numbered one after the other" : ""));
  else if (request.order == Order::filled)
    made.notes.push_back(base::format("order: {} to each {}{}", base::counted(request.per_domain, "rank"),
                                      level_name(request.domain),
                                      request.ranking == Ranking::span ? ", numbered in turn" : ""));
  else
    made.notes.push_back(base::format(
        "order: {}{}", order_reason(request.order),
        machine.unlike_cores && (automatic || request.order == Order::spread) ? ", faster cores first" : ""));
  made.notes.push_back(request.bind ? base::format("bound to: {}", level_name(request.bind_to))
                                    : std::string("bound to: nothing"));

  for (unsigned rank = 0; rank < request.ranks; ++rank) {
    // More ranks than places: neighbours share one, except where ranks are dealt out.
    std::size_t at = rank;
    if (chunks.size() < request.ranks)
      at = request.order == Order::dealt ? rank % chunks.size()
                                         : std::size_t{rank} * chunks.size() / request.ranks;
    Place place;
    place.text = place_text(machine, chunks[at], units, request, place);
    made.places.push_back(std::move(place));
  }
  plan = std::move(made);
  return {};
}

unsigned ranks_of_filled(const Machine& machine, const Slots& slots, const Request& request) {
  auto units = usable_units(machine, slots.allowed, request.by_hwthread);
  return request.per_domain * static_cast<unsigned>(grouped(units, request.domain).size());
}

std::string openmp_places(const Machine& machine, const Place& place) {
  std::string text;
  for (const auto& core : machine.cores) {
    CpuSet cpus = core.cpus & place.home;
    if (cpus.empty()) continue;
    std::string list;
    for (unsigned cpu : cpus.members()) list += (list.empty() ? "" : ",") + std::to_string(cpu);
    text += (text.empty() ? "{" : ",{") + list + "}";
  }
  return text;
}

std::string head_text(const Machine& machine, const Slots& slots, const Plan& plan) {
  std::string all = "machine: " + machine.text() + "\n";
  all += base::format("slots: {} ({})\n", slots.count, slots.reason);
  for (const auto& note : plan.notes) all += note + "\n";
  return all;
}

std::string places_text(const Plan& plan) {
  std::string all;
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank)
    all += base::format("rank {}: {}\n", rank, plan.places[rank].text);
  return all;
}

} // namespace near::planning
