// Broadcast in two levels: among the leaders, of which the root is one, and from each to the ranks of its machine.
//
// Long messages are cut into chunks, which travel along a chain of the leaders (pattern/chain.h). Cost for m machines:
// n beta + (m - 2) chunk beta, and n beta on a machine.
#include "coll/levels.h"
#include "pattern/chain.h"

namespace near::coll {
namespace {

struct ChainVerbs {
  Levels& levels;
  const Buffer& packed;

  Buffer chunk(int index) const {
    return byte_range(packed, index * pattern::chunk_bytes, pattern::bytes_of_chunk(packed.bytes(), index));
  }
  Result start_receive(int index, int from) { return levels.across().start_receive(chunk(index), from); }
  Result start_send(int index, int to) { return levels.across().start_send(chunk(index), to); }
  Result finish_until(int remaining) {
    return levels.across().finish_until(static_cast<std::size_t>(remaining));
  }
  Result here(int index) { return levels.broadcast(chunk(index)); }
};

} // namespace

Result broadcast_by_machine(CollectiveGroup& group, const Call& call) {
  Levels levels(group, call, call.root);
  const MPI_Count bytes = call.receive.bytes();
  if (!pattern::is_for_chain(bytes, levels.machines().count(), group.schedule() != nullptr)) {
    if (levels.leads())
      NEAR_TRY(run(levels.across(), broadcast_call(call.receive, levels.machines().index_of(call.root))));
    return levels.broadcast(call.receive);
  }
  // Chunks are cut by packed bytes, because ranks may describe the same signature by unlike types.
  const bool contiguous = call.receive.is_contiguous();
  Buffer packed;
  if (contiguous)
    packed = Buffer{call.receive.contiguous_start(), bytes, &byte_type(), call.receive.kind};
  else
    NEAR_TRY(group.scratch_bytes(bytes, packed));
  const bool is_root = group.rank() == call.root;
  if (!contiguous && is_root) NEAR_TRY(group.copy(call.receive, packed));
  const Machines& machines = levels.machines();
  const pattern::Chain chain(machines.count(), machines.index_of(call.root), machines.own());
  NEAR_TRY(pattern::pass_along(chain, pattern::chunks_of_chain(bytes), levels.leads(),
                               ChainVerbs{levels, packed}));
  return contiguous || is_root ? Result{} : group.copy(packed, call.receive);
}

} // namespace near::coll
