// What the model of collectives between machines assumes of machines and network, and the shared parts of one machine.
//
//     rank --- memory of its node --- link of the node --- link of the NIC's node --- NIC ===== network ===== NIC of another machine
//
// A message takes its bytes through these one after the other, each of which passes them on while they arrive: the slowest decides, and a
// part that is busy with other bytes delays them.
#pragma once

#include "pattern/levels.h"
#include "profile/profile.h"

#include <string>
#include <vector>

namespace near::model {

/// Nanoseconds, and nanoseconds a byte. The defaults are round numbers in the range of present servers; none of them was measured.
struct Network {
  double latency = 1500;        ///< from a NIC to another
  double overhead = 400;        ///< of the processor, for each message that it sends or receives
  double gap = 1 / 25.0;        ///< of a NIC, in each direction
  double link_gap = 1 / 20.0;   ///< of the link of a NUMA node, in each direction
  double crossing = 100;        ///< latency of a link
  double copy_gap = 1 / 10.0;   ///< of one rank that copies
  double add_gap = 1 / 8.0;     ///< of one rank that reduces
  double memory_gap = 1 / 80.0; ///< of a node's memory
  double flag = 150;            ///< until a rank of the same node sees what another has published
  MPI_Count eager = 64 << 10;   ///< longer messages wait for the receiver, which is a round trip
};
/// Takes what the profile says of copies and flags. False if it says nothing of them.
bool take_profile(const profile::Profile& profile, Network& network);

/// Machines that are all alike.
struct Shape {
  int machines = 2, ranks = 8, nodes = 4;
  int nic_node = 1;
  /// The node of a rank of a machine: ranks are in blocks on the nodes.
  int node_of(int rank) const { return static_cast<int>(static_cast<long>(rank) * nodes / ranks); }
  /// The lowest rank on the NIC's node.
  int near_rank() const {
    int rank = 0;
    while (node_of(rank) != nic_node) ++rank;
    return rank;
  }
};

/// A part that serves one transfer after the other.
struct Part {
  double free = 0;
  /// Serves `bytes` bytes that begin to arrive at `head` and end at `tail`, and moves both on.
  void pass(double& head, double& tail, double bytes, double gap, double latency = 0) {
    const double start = head < free ? free : head;
    free = start + bytes * gap;
    head = start + latency;
    tail = (tail < free ? free : tail) + latency;
  }
};

/// When a call of the ranks of one machine ends that its leader begins at 0, or, in a reduce, all of them.
struct OnMachine {
  double leader = 0, last = 0; ///< nanoseconds
  double leaves_node = 0;      ///< bytes that cross the link of the leader's node outwards
};
/// Simulates a broadcast or reduce by the algorithm that is chosen, chunk by chunk.
OnMachine on_machine(const Network& network, const Shape& shape, const choice::Facts& facts, int leader);

} // namespace near::model
