// Gather in two levels, of short blocks: to the leader of each machine, and from the leaders to the root, which leads its machine.
// Cost: that of a gather of longer blocks among the leaders, and of one on a machine.
#include "coll/levels.h"

namespace near::coll {
namespace {

Result gather_among_leaders(Levels& levels, const Buffer& own, const Blocks& blocks, int root) {
  Call call;
  call.collective = Collective::gatherv;
  call.send = own;
  call.receive_blocks = blocks;
  call.root = root;
  return run(levels.across(), call);
}

} // namespace

Result gather_by_machine(CollectiveGroup& group, const Call& call) {
  Levels levels(group, call, call.root);
  const Machines& machines = levels.machines();
  const MachineBlocks by_machine(machines, call.send.bytes());
  const int root = machines.index_of(call.root);
  Buffer packed;
  if (!levels.leads()) return levels.gather(call.send, Buffer{nullptr, 0, &byte_type()});
  if (group.rank() != call.root) {
    NEAR_TRY(group.scratch_bytes(call.send.bytes() * levels.here().size(), packed));
    NEAR_TRY(levels.gather(call.send, byte_range(packed, 0, call.send.bytes())));
    return gather_among_leaders(levels, packed, {}, root);
  }
  NEAR_TRY(group.scratch_bytes(by_machine.total(), packed));
  NEAR_TRY(levels.gather(call.send, by_machine.of_rank(packed, machines.own(), 0)));
  const BlocksByMachine blocks(machines, by_machine.of_rank(packed, 0, 0));
  NEAR_TRY(
      gather_among_leaders(levels, by_machine.of_machine(packed, machines.own()), blocks.blocks(), root));
  for (int machine = 0; machine < machines.count(); ++machine) {
    const RankList ranks = machines.ranks_of(machine);
    for (int index = 0; index < ranks.size(); ++index)
      if (!(call.in_place && ranks[index] == call.root))
        NEAR_TRY(group.copy(by_machine.of_rank(packed, machine, index), block(call.receive, ranks[index])));
  }
  return {};
}

} // namespace near::coll
