// See registry.h. The rows are in choice/algorithms.def.
#include "coll/registry.h"

#include "coll/algorithms.h"
#include "coll/shared/area.h"

#include <algorithm>

namespace near::coll {
namespace {

using Function = Result (*)(CollectiveGroup& group, const Call& call);

/// In the order of choice::algorithms().
constexpr Function functions[] = {
#define NEAR_ALGORITHM(collective, name, function, lack, wins) function,
#include "choice/algorithms.def"
#undef NEAR_ALGORITHM
};

} // namespace

Facts facts_of(const Call& call, int size) {
  Facts facts{.collective = call.collective, .size = size, .shared_processors = ranks_share_processors()};
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

Result run(CollectiveGroup& group, const Call& call) {
  Facts facts = facts_of(call, group.size());
  facts.recorded = group.schedule() != nullptr;
  facts.area = group.area() != nullptr;
  if (facts.area) facts.nodes = group.area()->nodes();
  return functions[choice::index_of(choose(facts))](group, call);
}

} // namespace near::coll
