#include "planning/plan.h"

#include "base/text.h"
#include "planning/binding.h"
#include "planning/orders.h"

#include <algorithm>
#include <map>

namespace near::planning {
namespace {

// Whether each rank gets units of its own. With ppr, one domain may be full while another is empty.
bool has_room(const Units& units, const Request& request) {
  if (request.order != Order::ppr) return std::uint64_t{request.ranks} * request.threads <= units.size();
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

// Whether the level is a part of the machine that has several cores: a cache, a NUMA node or a package.
bool is_part(Level level) { return level > Level::core && level < Level::machine; }

const char* order_reason(Order order) {
  return order == Order::packed ? "neighbouring cores"
                                : "neighbours in blocks over packages, nodes and caches";
}

/// Makes one plan, step by step, in the order in which the functions are declared.
class Planner {
public:
  Planner(const Machine& machine, const Slots& slots, const Request& asked)
      : machine_(machine), slots_(slots), asked_(asked), request_(asked) {}
  Result make(Plan& plan);

private:
  void choose_binding();
  void expect_threads();
  void take_hardware_threads();
  void count_positions();
  void choose_order();
  Result lay_out();
  Result lay_out_ppr();
  void widen_bindings();
  void note_order();
  void put_ranks();
  void give_whole_domains();

  const Chunk& chunk_of(unsigned rank) const;
  bool by_rankfile() const { return request_.order == Order::rankfile; }

  const Machine& machine_;
  const Slots& slots_;
  const Request& asked_;
  Request request_; ///< `asked_` completed with our decisions
  Plan made_;
  Units units_;
  bool loose_ = false;     ///< ranks will start more threads than there are cores for
  bool crowded_ = false;   ///< ranks have to share units
  bool automatic_ = false; ///< the user did not choose an order
  bool by_domain_ = false; ///< bound to the domains by which they are mapped
  bool alone_ = false;     ///< the only rank, about which nothing else is said
  unsigned positions_ = 0; ///< ranks that get units of their own
  std::vector<Chunk> chunks_;
};

Result Planner::make(Plan& plan) {
  made_.oversubscribed = std::uint64_t{request_.ranks} * request_.threads > slots_.count;
  request_.threads = std::max(request_.threads, 1u);
  units_ = usable_units(machine_, slots_.allowed, request_.by_hwthread);
  if (units_.empty())
    return base::fail(base::Code::limit, "none of the machine's processors ({}) is in the allowed set ({})",
                      machine_.cpus().text(), slots_.allowed.text());
  choose_binding();
  expect_threads();
  take_hardware_threads();
  count_positions();
  choose_order();
  NEAR_TRY(lay_out());
  widen_bindings();
  note_order();
  put_ranks();
  give_whole_domains();
  plan = std::move(made_);
  return {};
}

/// Binds ranks to the domains by which they are mapped, if the user chose neither what to bind them to nor how many cores each
/// gets. Open MPI does the same. The only rank of a job takes no core from another rank by starting threads, so it is bound to its
/// node.
void Planner::choose_binding() {
  bool mapped = request_.order == Order::round_robin || request_.order == Order::ppr;
  by_domain_ = mapped && is_part(request_.domain) && !request_.bind_chosen && !request_.threads_chosen;
  if (by_domain_) request_.bind_to = request_.domain;
  const bool told = request_.bind_chosen || request_.threads_chosen || !request_.expected_by.empty();
  alone_ = request_.only_rank && request_.order == Order::automatic && !told;
  if (!alone_) return;
  request_.bind_to = Level::numa;
  made_.notes.emplace_back("one rank: bound to its NUMA node, since it may start threads");
}

/// Gives each rank cores for the threads that it will start, if the user did not choose the number of cores.
void Planner::expect_threads() {
  if (request_.expected_threads <= 1 || request_.threads_chosen || by_rankfile()) return;
  auto expected = std::uint64_t{request_.ranks} * request_.expected_threads;
  loose_ = expected > std::min<std::uint64_t>(units_.size(), slots_.count);
  // If there are too few cores, each rank gets an equal part of them.
  auto part = std::max(static_cast<unsigned>(units_.size()) / request_.ranks, 1u);
  request_.threads = loose_ ? std::min(part, request_.expected_threads) : request_.expected_threads;
  made_.notes.push_back(base::format("threads: {}{}", request_.expected_by,
                                     loose_ ? " for each rank are more than there are cores" : ""));
}

/// Gives ranks single hardware threads where there are too few cores.
void Planner::take_hardware_threads() {
  if (has_room(units_, request_) || request_.by_hwthread || by_rankfile()) return;
  Units threads = usable_units(machine_, slots_.allowed, true);
  bool bound_to_cores = asked_.bind_chosen && asked_.bind && asked_.bind_to == Level::core;
  if (!has_room(threads, request_) || bound_to_cores) return;
  units_ = std::move(threads);
  bool ppr = request_.order == Order::ppr;
  made_.notes.push_back(
      base::format("{} too few for {}: {}",
                   ppr ? base::format("the cores of each {} are", level_name(request_.domain))
                       : base::format("{} cores are", machine_.cores.size()),
                   std::uint64_t{ppr ? request_.per_domain : request_.ranks} * request_.threads,
                   by_domain_ ? "hardware threads count as cores" : "ranks take single hardware threads"));
  if (!request_.bind_chosen && !by_domain_) request_.bind_to = Level::hwthread;
}

void Planner::count_positions() {
  crowded_ = !has_room(units_, request_) && !by_rankfile();
  request_.threads = std::min(request_.threads, static_cast<unsigned>(units_.size()));
  positions_ = std::min(request_.ranks, static_cast<unsigned>(units_.size()) / request_.threads);
}

void Planner::choose_order() {
  automatic_ = request_.order == Order::automatic;
  if (!automatic_) return;
  request_.order = request_.ranks <= 2 && request_.threads == 1 ? Order::packed : Order::spread;
  // Two ranks to be bound to packages get one each, as with other launchers, not both the first.
  bool to_parts = request_.bind_chosen && request_.bind && is_part(request_.bind_to);
  if (request_.order == Order::packed && to_parts && !machine_.unlike_cores) {
    request_.order = Order::round_robin;
    request_.domain = request_.bind_to;
  }
}

Result Planner::lay_out() {
  unsigned threads = request_.threads;
  switch (request_.order) {
  case Order::automatic:
  case Order::packed:
    if (automatic_ && machine_.unlike_cores)
      std::sort(units_.begin(), units_.end(), [](const Unit& one, const Unit& other) {
        return one.core->speed != other.core->speed ? one.core->speed > other.core->speed
                                                    : comes_before(one, other);
      });
    chunks_ = packed(units_, threads, positions_);
    break;
  case Order::spread: chunks_ = spread_by_speed(units_, threads, positions_); break;
  case Order::round_robin:
    chunks_ = round_robin(units_, threads, positions_, request_.domain, request_.ranking);
    break;
  case Order::by_nic: {
    std::vector<Device> nics;
    NEAR_TRY(chosen_nics(machine_, request_.nic, nics));
    chunks_ = by_nic(machine_, nics, units_, threads, positions_);
    break;
  }
  case Order::rankfile:
    return rankfile(machine_, usable_units(machine_, slots_.allowed, false), request_, chunks_);
  case Order::ppr: NEAR_TRY(lay_out_ppr()); break;
  }
  // Domains with fewer cores than a rank has threads give no chunk: then take neighbours, across domains.
  if (chunks_.size() < positions_) chunks_ = packed(units_, threads, positions_);
  return {};
}

Result Planner::lay_out_ppr() {
  auto domains = grouped(units_, request_.domain).size();
  auto room = domains * request_.per_domain;
  if (room < request_.ranks)
    return base::fail(base::Code::limit, "--map-by ppr:{}:{} has room for {} ({}), not for {}",
                      request_.per_domain, level_name(request_.domain), base::counted(room, "rank"),
                      base::counted(domains, "domain"), request_.ranks);
  chunks_ =
      ppr(units_, request_.threads, request_.ranks, request_.domain, request_.per_domain, request_.ranking);
  return {};
}

/// If ranks share cores, or a rank has fewer cores than threads, no rank is bound to single cores unless the
/// user asked for it.
void Planner::widen_bindings() {
  // No narrower than the domains that the user chose.
  Level wide = by_domain_ ? std::max(request_.domain, Level::numa) : Level::numa;
  bool several = grouped(units_, wide).size() > 1;
  if (crowded_ && !request_.bind_chosen) {
    request_.bind = several;
    request_.bind_to = wide;
    bool ppr = request_.order == Order::ppr;
    made_.notes.push_back(base::format(
        "{} of {} on {}: {}, because a rank that waits would keep the one that shares its core from running",
        base::counted(ppr ? request_.per_domain : request_.ranks, "rank"),
        base::counted(request_.threads, "thread"),
        ppr ? base::format("each {}", level_name(request_.domain))
            : base::counted(cpus_of(units_).count(), "processor"),
        !several                 ? "none is bound"
        : wide == Level::package ? "each is bound to a package only"
                                 : "each is bound to a NUMA node only"));
  } else if (request_.bind && request_.bind_to <= Level::core &&
             (crowded_ || (by_rankfile() && overlap(chunks_)))) {
    made_.notes.push_back(
        "several ranks share a core as asked for: one that waits keeps the other from running");
  }
  auto narrow = [&](const Chunk& chunk) { return cpus_of(chunk).count() < request_.expected_threads; };
  if (loose_ && !crowded_ && !request_.bind_chosen && !by_domain_ &&
      std::any_of(chunks_.begin(), chunks_.end(), narrow)) {
    // Several threads on one core would be far slower than threads that can move.
    request_.bind = several;
    request_.bind_to = Level::numa;
  }
}

void Planner::note_order() {
  auto note = [&](std::string text) { made_.notes.push_back(std::move(text)); };
  switch (request_.order) {
  case Order::by_nic:
    note(base::format("order: nearest to {} first", request_.nic.empty() ? "a NIC" : request_.nic));
    break;
  case Order::rankfile: note(base::format("order: as {} says", request_.rankfile_name)); break;
  case Order::round_robin:
    note(base::format("order: one rank to each {} in turn{}", level_name(request_.domain),
                      request_.ranking == Ranking::fill ? ", numbered one after the other" : ""));
    break;
  case Order::ppr:
    note(base::format("order: {} to each {}{}", base::counted(request_.per_domain, "rank"),
                      level_name(request_.domain),
                      request_.ranking == Ranking::span ? ", numbered in turn" : ""));
    break;
  case Order::automatic:
  case Order::packed:
  case Order::spread:
    note(base::format("order: {}{}", order_reason(request_.order),
                      machine_.unlike_cores && (automatic_ || request_.order == Order::spread)
                          ? ", faster cores first"
                          : ""));
  }
  note(request_.bind ? base::format("bound to: {}", level_name(request_.bind_to))
                     : std::string("bound to: nothing"));
}

/// If there are more ranks than chunks, neighbouring ranks share one; with round-robin, ranks go round the
/// domains.
const Chunk& Planner::chunk_of(unsigned rank) const {
  std::size_t at = rank;
  if (chunks_.size() < request_.ranks)
    at = request_.order == Order::round_robin ? rank % chunks_.size()
                                              : std::size_t{rank} * chunks_.size() / request_.ranks;
  return chunks_[at];
}

void Planner::put_ranks() {
  for (unsigned rank = 0; rank < request_.ranks; ++rank)
    made_.bindings.push_back(binding_of(machine_, chunk_of(rank), units_, request_));
}

/// Gives each rank that is bound to a domain, and is alone there, all of it: it may start threads of which
/// nobody has told us. If their number is known, the cores for these are its own.
void Planner::give_whole_domains() {
  bool told = request_.threads_chosen || !request_.expected_by.empty();
  if (!request_.bind || !is_part(request_.bind_to) || told || crowded_ || by_rankfile()) return;
  std::map<unsigned, unsigned> ranks; // by domain
  auto domain = [&](unsigned rank) { return domain_of(*chunk_of(rank).front().core, request_.bind_to); };
  for (unsigned rank = 0; rank < request_.ranks; ++rank) ++ranks[domain(rank)];
  for (unsigned rank = 0; rank < request_.ranks; ++rank) {
    if (ranks[domain(rank)] > 1) continue;
    auto& binding = made_.bindings[rank];
    // Several jobs of one rank may run side by side: cores other than the first are left to them.
    if (!alone_) binding.home = binding.cpus;
    binding.whole_domain = true;
  }
}

} // namespace

Result make_plan(const Machine& machine, const Slots& slots, const Request& request, Plan& plan) {
  return Planner(machine, slots, request).make(plan);
}

unsigned ranks_of_ppr(const Machine& machine, const Slots& slots, const Request& request) {
  auto units = usable_units(machine, slots.allowed, request.by_hwthread);
  return request.per_domain * static_cast<unsigned>(grouped(units, request.domain).size());
}

} // namespace near::planning
