// A call in two levels: among the ranks of each machine, and among the leaders of the machines. So data crosses between two
// machines once, however many ranks need it there.
#pragma once

#include "coll/algorithms.h"
#include "coll/coll.h"
#include "coll/registry.h"

#include <vector>

namespace near::coll {

class Levels {
public:
  /// `root`: a rank that leads its machine; -1: any may. The group knows its machines, and must outlive this object.
  Levels(CollectiveGroup& whole, const Call& asked, int root = -1);

  const Machines& machines() const { return machines_; }
  /// The ranks of this machine, and the leaders by machine.
  CollectiveGroup& here() { return here_; }
  CollectiveGroup& across() { return across_; }
  bool leads() const { return across_.is_member(); }

  // Phases on this machine.
  /// Reduces to the leader, whose result is at `result`; other ranks may pass null.
  Result reduce(const Buffer& own, void* result, const Operation& operation);
  Result broadcast(const Buffer& buffer);
  /// `one` describes a rank's block at the leader, where those of the ranks here follow each other.
  Result gather(const Buffer& own, const Buffer& one);
  Result scatter(const Buffer& one, const Buffer& own);

private:
  RankList leaders(int root);
  /// Runs a call with the leader as its root; a rank that is alone copies.
  Result run_here(Call call);
  const Machines& machines_;
  std::vector<int> with_root_; ///< the leaders, if the root is not the lowest rank of its machine
  CollectiveGroup here_, across_;
  int leader_; ///< of this machine, in here()
};

/// Blocks of packed bytes, one for each rank, ordered by machine.
class MachineBlocks {
public:
  /// `bytes` of one block.
  MachineBlocks(const Machines& machines, MPI_Count bytes) : machines_(machines), bytes_(bytes) {}
  MPI_Count total() const { return offset(machines_.count()); }
  MPI_Count offset(int machine) const { return bytes_ * machines_.ranks_before(machine); }
  Buffer of_machine(const Buffer& blocks, int machine) const {
    return byte_range(blocks, offset(machine), offset(machine + 1) - offset(machine));
  }
  /// The block of the rank that is number `index` on the machine.
  Buffer of_rank(const Buffer& blocks, int machine, int index) const {
    return byte_range(blocks, offset(machine) + bytes_ * index, bytes_);
  }

private:
  const Machines& machines_;
  MPI_Count bytes_;
};

/// What the leaders exchange by a v form: for each machine the blocks of its ranks in a buffer that has one for every rank, in
/// rank order.
class BlocksByMachine {
public:
  /// `one` describes a block of the buffer. The ranks of each machine follow each other.
  BlocksByMachine(const Machines& machines, const Buffer& one);
  BlocksByMachine(const BlocksByMachine&) = delete;
  BlocksByMachine& operator=(const BlocksByMachine&) = delete;
  const Blocks& blocks() const { return blocks_; }

private:
  std::vector<MPI_Count> counts_, displacements_;
  Blocks blocks_;
};

} // namespace near::coll
