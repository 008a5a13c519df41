// All-to-all in two levels, of short blocks: each leader gathers what its ranks send, the leaders exchange the blocks between their
// machines, each pair in one message, and each leader scatters what its ranks receive. Cost: that of an all-to-all of longer blocks
// among the leaders, two copies of all blocks at each, and a gather and a scatter on a machine.
#include "coll/levels.h"

namespace near::coll {
namespace {

/// What two machines exchange: for each machine, the blocks from each rank here to each rank there, or from there to here.
class Exchanged {
public:
  Exchanged(const Machines& machines, int here, MPI_Count block)
      : machines_(machines), here_(here), block_(block) {
    for (int machine = 0; machine < machines.count(); ++machine) {
      counts_.push_back(block * here * machines.ranks_of(machine).size());
      displacements_.push_back(block * here * machines.ranks_before(machine));
    }
  }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;
  Blocks blocks(const Buffer& packed) const {
    return {.address = packed.address,
            .counts = Counts(counts_.data()),
            .displacements = Counts(displacements_.data()),
            .type = &byte_type()};
  }
  /// The blocks from rank number `from` here to all ranks of the machine.
  Buffer to_machine(const Buffer& packed, int machine, int from) const {
    const int there = machines_.ranks_of(machine).size();
    return byte_range(packed, start(machine) + block_ * from * there, block_ * there);
  }
  /// The block from rank number `from` of the machine to rank number `to` here.
  Buffer from_rank(const Buffer& packed, int machine, int from, int to) const {
    return byte_range(packed, start(machine) + block_ * (from * here_ + to), block_);
  }

private:
  MPI_Count start(int machine) const { return displacements_[static_cast<std::size_t>(machine)]; }
  const Machines& machines_;
  int here_;
  MPI_Count block_;
  std::vector<MPI_Count> counts_, displacements_;
};

/// What the leader does with the blocks of its ranks: `sent` becomes `received`, in both of which a rank's blocks lie together, in
/// rank order.
Result exchange_among_leaders(CollectiveGroup& group, Levels& levels, const Buffer& sent,
                              const Buffer& received, MPI_Count bytes) {
  const Machines& machines = levels.machines();
  const int here = levels.here().size(), size = group.size();
  const Exchanged exchanged(machines, here, bytes);
  Buffer leaving, arriving;
  NEAR_TRY(group.scratch_bytes(sent.count, leaving));
  NEAR_TRY(group.scratch_bytes(sent.count, arriving));
  auto at = [&](const Buffer& of, int own, int rank) {
    return byte_range(of, bytes * (own * size + rank), bytes);
  };
  for (int machine = 0; machine < machines.count(); ++machine) {
    const RankList ranks = machines.ranks_of(machine);
    for (int own = 0; own < here; ++own) {
      const Buffer to = exchanged.to_machine(leaving, machine, own);
      for (int index = 0; index < ranks.size(); ++index)
        NEAR_TRY(group.copy(at(sent, own, ranks[index]), byte_range(to, bytes * index, bytes)));
    }
  }
  Call call;
  if (machines.are_equal()) { // there are more ways to exchange equal blocks
    const MPI_Count between_two = bytes * here * here;
    call.collective = Collective::alltoall;
    call.send = byte_range(leaving, 0, between_two);
    call.receive = byte_range(arriving, 0, between_two);
  } else {
    call.collective = Collective::alltoallv;
    call.send_blocks = exchanged.blocks(leaving);
    call.receive_blocks = exchanged.blocks(arriving);
  }
  NEAR_TRY(run(levels.across(), call));
  for (int machine = 0; machine < machines.count(); ++machine) {
    const RankList ranks = machines.ranks_of(machine);
    for (int index = 0; index < ranks.size(); ++index)
      for (int own = 0; own < here; ++own)
        NEAR_TRY(
            group.copy(exchanged.from_rank(arriving, machine, index, own), at(received, own, ranks[index])));
  }
  return {};
}

} // namespace

Result alltoall_by_machine(CollectiveGroup& group, const Call& call) {
  Levels levels(group, call);
  const int size = group.size();
  const MPI_Count bytes = call.receive.bytes(), of_rank = bytes * size;
  const Buffer all_sent = block(call.send, 0, size), all_received = block(call.receive, 0, size);
  if (!levels.leads()) {
    const Buffer none{nullptr, 0, &byte_type()};
    NEAR_TRY(levels.gather(all_sent, none));
    return levels.scatter(none, all_received);
  }
  Buffer sent, received;
  NEAR_TRY(group.scratch_bytes(of_rank * levels.here().size(), sent));
  NEAR_TRY(group.scratch_bytes(of_rank * levels.here().size(), received));
  NEAR_TRY(levels.gather(all_sent, byte_range(sent, 0, of_rank)));
  NEAR_TRY(exchange_among_leaders(group, levels, sent, received, bytes));
  return levels.scatter(byte_range(received, 0, of_rank), all_received);
}

} // namespace near::coll
