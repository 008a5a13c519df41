// Allgather in two levels: each leader gathers the blocks of its machine, the leaders exchange them, and each passes all of them on
// to its machine. Cost: that of an allgather of longer blocks among the leaders, and of a gather and a broadcast on a machine.
#include "coll/levels.h"

namespace near::coll {
namespace {

/// Among the leaders: `one` describes a block of a buffer that has one for every rank, ordered by machine, of which those of this
/// machine are there.
Result exchange_among_leaders(Levels& levels, const Buffer& one) {
  const Machines& machines = levels.machines();
  const BlocksByMachine blocks(machines, one);
  Call call;
  call.in_place = true;
  call.send = blocks.blocks().at(machines.own());
  if (machines.are_equal()) { // there are more ways to exchange equal blocks
    call.collective = Collective::allgather;
    call.receive = block(one, 0, machines.most_ranks());
  } else {
    call.collective = Collective::allgatherv;
    call.receive_blocks = blocks.blocks();
  }
  return run(levels.across(), call);
}

/// The leaders' part, where ranks of one machine do not follow each other: the blocks are packed in the order of the machines.
Result exchange_packed(CollectiveGroup& group, Levels& levels, const Call& call) {
  const Machines& machines = levels.machines();
  const MachineBlocks by_machine(machines, call.receive.bytes());
  Buffer packed;
  if (levels.leads()) NEAR_TRY(group.scratch_bytes(by_machine.total(), packed));
  Buffer own{nullptr, by_machine.of_rank(packed, 0, 0).count, &byte_type()};
  if (levels.leads()) own = by_machine.of_rank(packed, machines.own(), 0);
  NEAR_TRY(levels.gather(call.send, own));
  if (!levels.leads()) return {};
  NEAR_TRY(exchange_among_leaders(levels, by_machine.of_rank(packed, 0, 0)));
  for (int machine = 0; machine < machines.count(); ++machine) {
    const RankList ranks = machines.ranks_of(machine);
    for (int index = 0; index < ranks.size(); ++index)
      NEAR_TRY(group.copy(by_machine.of_rank(packed, machine, index), block(call.receive, ranks[index])));
  }
  return {};
}

} // namespace

Result allgather_by_machine(CollectiveGroup& group, const Call& call) {
  Levels levels(group, call);
  const Machines& machines = levels.machines();
  if (!machines.in_order()) {
    NEAR_TRY(exchange_packed(group, levels, call));
  } else {
    NEAR_TRY(levels.gather(call.send, block(call.receive, machines.ranks_before(machines.own()))));
    if (levels.leads()) NEAR_TRY(exchange_among_leaders(levels, call.receive));
  }
  return levels.broadcast(block(call.receive, 0, group.size()));
}

} // namespace near::coll
