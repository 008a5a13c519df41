// See leaders.h.
#include "coll/leaders.h"

#include "base/log.h"
#include "coll/coll.h"
#include "coll/registry.h"
#include "memory/segments.h"
#include "topo/nearest.h"

namespace near::coll {
namespace {

/// The distances of some ranks on this machine.
std::vector<std::uint32_t> distances_of(const Communicator& communicator, RankList here) {
  std::vector<std::uint32_t> distances;
  for (int i = 0; i < here.size(); ++i)
    distances.push_back(memory::nic_distance(communicator.process_ids[here[i]]));
  return distances;
}

int elected_here(const Communicator& communicator, RankList here) {
  const std::vector<std::uint32_t> distances = distances_of(communicator, here);
  const int leader = topo::nearest(distances);
  if (leader != 0 && here[leader] == communicator.rank)
    base::log(
        base::Level::debug,
        "this rank leads those of its machine in collectives between machines: its distance from the NIC "
        "is {}, that of rank {} is {}",
        distances[static_cast<std::size_t>(leader)], here[0], distances[0]);
  return here[leader];
}

/// Lets all ranks know the leaders; `leaders` contains that of this machine.
Result exchange(Communicator& communicator, const Machines& machines, std::vector<int>& leaders) {
  Datatype& bytes = byte_type();
  const CollectiveGroup whole(communicator);
  CollectiveGroup across(whole, machines.leaders()), here(whole, machines.ranks_of(machines.own()));
  across.set_among_leaders();
  int own = leaders[static_cast<std::size_t>(machines.own())];
  if (across.is_member())
    NEAR_TRY(run(across, allgather_call(Buffer{&own, sizeof own, &bytes},
                                        Buffer{leaders.data(), sizeof own, &bytes}, communicator)));
  const auto all = static_cast<MPI_Count>(leaders.size() * sizeof own);
  return run(here, broadcast_call(Buffer{leaders.data(), all, &bytes}, 0));
}

} // namespace

Result elect_leaders(Communicator& communicator, AreaExtension& extension) {
  const Machines& machines = *extension.machines;
  if (machines.most_ranks() > 1) {
    std::vector<int> leaders(static_cast<std::size_t>(machines.count()));
    leaders[static_cast<std::size_t>(machines.own())] =
        elected_here(communicator, machines.ranks_of(machines.own()));
    NEAR_TRY(exchange(communicator, machines, leaders));
    auto elected = std::make_unique<Machines>(machines);
    elected->set_leaders(std::move(leaders));
    extension.before_election = std::move(extension.machines);
    extension.machines = std::move(elected);
  }
  extension.leaders_elected = true;
  return {};
}

} // namespace near::coll
