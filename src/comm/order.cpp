// See order.h. A process knows the machine of every other process, but the nodes only of those on its own machine. That is enough
// to find its own rank, which it then exchanges with the others.
#include "comm/order.h"

#include "base/log.h"
#include "comm/exchange.h"
#include "memory/segments.h"

#include <algorithm>
#include <numeric>

namespace near::comm {
namespace {

enum Kind : std::size_t { machine, package, node, kind_count };

/// The parts of the first `count` processes. Packages and nodes are known only for processes on this machine.
std::vector<Parts> parts_of(const Communicator& parent, int count) {
  std::vector<Parts> kinds(kind_count);
  for (int rank = 0; rank < count; ++rank) {
    const object::ProcessId process = parent.process_ids[rank];
    const std::uint32_t its_machine = memory::machine_of(process);
    const bool is_here = its_machine == memory::space().machine;
    const segment::Location location = is_here ? memory::location_of(process) : segment::Location{};
    kinds[machine].push_back(its_machine);
    kinds[package].push_back(location.package);
    kinds[node].push_back(std::uint64_t{location.package} << 16 | location.numa);
  }
  return kinds;
}

bool has_several_machines(const Communicator& communicator) {
  if (memory::space().machine_of.empty()) return false;
  const std::uint32_t first = memory::machine_of(communicator.process_ids[0]);
  for (int rank = 1; rank < communicator.size; ++rank)
    if (memory::machine_of(communicator.process_ids[rank]) != first) return true;
  return false;
}

/// The weight of the edges between machines, and of those between nodes of this machine.
struct Cut {
  std::int64_t between_machines = 0, between_nodes = 0;
};

Cut cut_of(const Pattern& pattern, const std::vector<Parts>& kinds, const std::vector<int>& order) {
  auto part = [&](Kind kind, int rank) {
    return kinds[kind][static_cast<std::size_t>(order[static_cast<std::size_t>(rank)])];
  };
  Cut cut;
  for (int rank = 0; rank < pattern.graph.size(); ++rank)
    for (const auto& [neighbour, weight] : pattern.graph.neighbours(rank)) {
      if (neighbour < rank) continue;
      if (part(machine, rank) != part(machine, neighbour))
        cut.between_machines += weight;
      else if (part(machine, rank) == memory::space().machine && part(node, rank) != part(node, neighbour))
        cut.between_nodes += weight;
    }
  return cut;
}

/// Lets the lowest process on each machine log what the order changes.
void log_order(const Communicator& parent, const Pattern& pattern, const std::vector<int>& order) {
  if (base::level() < base::Level::debug || std::is_sorted(order.begin(), order.end())) return;
  const std::vector<Parts> kinds = parts_of(parent, pattern.graph.size());
  const auto first = std::find(kinds[machine].begin(), kinds[machine].end(), memory::space().machine);
  if (first - kinds[machine].begin() != parent.rank) return;
  std::vector<int> unchanged(order.size());
  std::iota(unchanged.begin(), unchanged.end(), 0);
  const Cut before = cut_of(pattern, kinds, unchanged), after = cut_of(pattern, kinds, order);
  base::log(base::Level::debug,
            "{} ranks of a topology are reordered: the edges between machines weigh {} instead of {}, those "
            "between nodes of this "
            "machine {} instead of {}",
            order.size(), after.between_machines, before.between_machines, after.between_nodes,
            before.between_nodes);
}

/// Tells every process the ranks of all.
Result exchange(Communicator& parent, int own, std::vector<int>& rank_of) {
  rank_of.resize(static_cast<std::size_t>(parent.size));
  return coll::all_gather(byte_buffer(&own, sizeof own), byte_buffer(rank_of.data(), sizeof own), parent);
}

} // namespace

bool may_reorder(const Communicator& parent, int count) {
  if (count < 2) return false;
  if (has_several_machines(parent)) return true;
  const Parts nodes = parts_of(parent, count)[node];
  return std::any_of(nodes.begin(), nodes.end(), [&](std::uint64_t each) { return each != nodes.front(); });
}

int own_rank_in(const Communicator& parent, const Pattern& pattern) {
  if (parent.rank >= pattern.graph.size()) return MPI_UNDEFINED;
  return reordered_ranks(pattern,
                         parts_of(parent, pattern.graph.size()))[static_cast<std::size_t>(parent.rank)];
}

Result agree_on_order(Communicator& parent, const Pattern& pattern, std::vector<int>& order) {
  const int count = pattern.graph.size();
  std::vector<int> rank_of;
  if (has_several_machines(parent))
    NEAR_TRY(exchange(parent, own_rank_in(parent, pattern), rank_of));
  else
    rank_of = reordered_ranks(pattern, parts_of(parent, count));

  order.assign(static_cast<std::size_t>(count), MPI_UNDEFINED);
  for (int process = 0; process < count; ++process) {
    const int rank = rank_of[static_cast<std::size_t>(process)];
    if (rank < 0 || rank >= count || order[static_cast<std::size_t>(rank)] != MPI_UNDEFINED)
      return base::fail(MPI_ERR_TOPOLOGY, "the processes of {} have described different topologies",
                        object::describe(parent));
    order[static_cast<std::size_t>(rank)] = process;
  }
  log_order(parent, pattern, order);
  return {};
}

} // namespace near::comm
