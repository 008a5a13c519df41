// What the model of collectives between machines assumes about machines and network, and the shared parts of one machine.
//
//     rank --- memory of its node --- link of the node --- link of the NIC's node --- NIC ===== network ===== NIC of another machine
//
// A message's bytes pass through these one after another; each part passes bytes on as they arrive. The slowest part decides, and a
// part that is busy with other bytes delays them.
#pragma once

#include "pattern/levels.h"
#include "profile/profile.h"

#include <string>
#include <vector>

namespace near::model {

/// In nanoseconds, and nanoseconds per byte. The defaults are round
/// numbers in the range of present servers; none of them was measured.
struct Network {
  double latency = 1500;        ///< from one NIC to another
  double overhead = 400;        ///< of the processor, for each message sent or received
  double gap = 1 / 25.0;        ///< of a NIC, in each direction
  double link_gap = 1 / 20.0;   ///< of the link of a NUMA node, in each direction
  double crossing = 100;        ///< latency of a link
  double copy_gap = 1 / 10.0;   ///< of one rank that copies
  double add_gap = 1 / 8.0;     ///< of one rank that reduces
  double memory_gap = 1 / 80.0; ///< of a node's memory
  double flag = 150;            ///< until a rank on the same node sees what another has published
  MPI_Count eager = 64 << 10;   ///< longer messages wait for the receiver, which costs a round trip
};
/// Takes the costs of copies and flags from the profile. Returns false if the profile has none.
bool take_profile(const profile::Profile& profile, Network& network);

/// Machines that are all alike.
struct Shape {
  int machines = 2, ranks = 8, nodes = 4;
  int nic_node = 1;
  /// The node of a rank on a machine: ranks are placed on the nodes in blocks.
  int node_of(int rank) const { return static_cast<int>(static_cast<long>(rank) * nodes / ranks); }
  /// The lowest rank on the NIC's node.
  int near_rank() const {
    int rank = 0;
    while (node_of(rank) != nic_node) ++rank;
    return rank;
  }
};

/// A part that serves one transfer after another.
struct Part {
  double free = 0;
  /// Serves `bytes` bytes that begin to arrive at `head` and end at `tail`, and advances both.
  void pass(double& head, double& tail, double bytes, double gap, double latency = 0) {
    const double start = head < free ? free : head;
    free = start + bytes * gap;
    head = start + latency;
    tail = (tail < free ? free : tail) + latency;
  }
};

/// When a call by the ranks of one machine ends. Its leader begins at 0; in a reduce, all ranks do.
struct OnMachine {
  double leader = 0, last = 0; ///< nanoseconds
  double leaves_node = 0;      ///< bytes that cross the link of the leader's node outwards
};
/// Simulates a broadcast or reduce by the chosen algorithm, chunk by chunk.
OnMachine on_machine(const Network& network, const Shape& shape, const choice::Facts& facts, int leader);

} // namespace near::model
