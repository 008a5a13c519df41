// See registry.h. The rows are in choice/algorithms.def.
#include "coll/registry.h"

#include "coll/algorithms.h"
#include "coll/shared/single_copy.h"
#include "pattern/levels.h"

#include <algorithm>

namespace near::coll {
namespace {

/// In the order of choice::algorithms().
constexpr Function functions[] = {
#define NEAR_ALGORITHM(collective, name, function, lack, wins) function,
#include "choice/algorithms.def"
#undef NEAR_ALGORITHM
};

/// With data that fits into one chunk, these only publish it and read what others have published.
constexpr Function publish_once[] = {barrier_shared,        broadcast_shared,  reduce_shared_flat,
                                     allreduce_shared_flat, gather_shared,     scatter_shared,
                                     allgather_shared,      allgatherv_shared, alltoall_shared,
                                     reduce_scatter_shared, scan_shared,       exscan_shared};

} // namespace

Function find_short(const Facts& facts) {
  const MPI_Count bytes = published_bytes(facts);
  if (!facts.area || bytes > short_bytes || (bytes == 0 && facts.collective != Collective::barrier))
    return nullptr;
  const Function chosen = functions[choice::index_of(choose(facts))];
  return std::find(std::begin(publish_once), std::end(publish_once), chosen) != std::end(publish_once)
             ? chosen
             : nullptr;
}

bool publishes_parts(const Facts& facts) {
  const Function chosen = functions[choice::index_of(choose(facts))];
  return chosen == gatherv_shared || chosen == scatterv_shared || chosen == alltoallv_shared;
}

Facts facts_of(const Call& call, int size) {
  Facts facts{.collective = call.collective, .size = size, .shared_processors = choice::shared_processors()};
  if (call.operation != nullptr) {
    facts.commutative = call.operation->commutative;
    facts.elementwise = call.operation->builtin != datatype::Builtin::user && call.send.type->contiguous;
  }
  switch (call.collective) {
    using enum Collective;
  case alltoall: facts.in_place = call.in_place; [[fallthrough]];
  case broadcast:
  case scatter:
  case allgather:
    // At the root of a scatter the receive buffer is the root's own block, so it is right there too.
    facts.bytes = call.receive.bytes();
    break;
  case gather:
  case reduce:
  case allreduce:
  case scan:
  case exscan: facts.bytes = call.send.bytes(); break;
  case reduce_scatter_block: facts.bytes = call.send.bytes() * size; break;
  case reduce_scatter:
    for (int i = 0; i < size; ++i) {
      facts.bytes += call.receive_blocks.counts[i];
      facts.longest = std::max<MPI_Count>(facts.longest, call.receive_blocks.counts[i]);
    }
    facts.bytes *= call.send.type->size;
    facts.longest *= call.send.type->size;
    break;
  case allgatherv:
    for (int i = 0; i < size; ++i) facts.bytes += call.receive_blocks.counts[i];
    facts.bytes *= call.receive_blocks.type->size;
    break;
  case alltoallv:
  case alltoallw: facts.in_place = call.in_place; break;
  default: break;
  }
  return facts;
}

void add_area(Facts& facts, const Area& area) {
  facts.area = true;
  facts.nodes = area.nodes();
  facts.reads_memory =
      area.reading() == Area::Reading::yes || (area.reading() == Area::Reading::unknown && !facts.recorded);
}

Result run(CollectiveGroup& group, const Call& call) {
  Facts facts = facts_of(call, group.size());
  group.set_bytes(facts.bytes);
  facts.recorded = group.schedule() != nullptr;
  Area* const area = group.area();
  if (area != nullptr) add_area(facts, *area);
  if (group.machines() != nullptr) pattern::add_machines(facts, *group.machines());
  if (group.is_among_leaders()) pattern::set_among_leaders(facts);
  const Algorithm* chosen = &choose(facts);
  if (choice::reads_memory(*chosen) && area->reading() == Area::Reading::unknown) [[unlikely]] {
    NEAR_TRY(agree_on_reading(call, facts.bytes, group.communicator(), *area));
    add_area(facts, *area);
    chosen = &choose(facts);
  }
  const Result result = functions[choice::index_of(*chosen)](group, call);
  if (!result.ok()) [[unlikely]] {
    // The other ranks of this machine would wait for the phases that are left, and count them.
    if (group.area_here() != nullptr && choice::has_levels(*chosen))
      group.area_here()->give_up(describe(call, facts.bytes));
    // Ranks with an area may wait for this rank's messages.
    if (area != nullptr && group.has_dropped_out()) area->give_up(describe(call, facts.bytes));
  }
  return result;
}

} // namespace near::coll
