// The ranks of a topology's communicator, so that neighbours run near each other. What this file declares knows nothing of
// processes: it is a function of the pattern and of the parts in which the processes are. doc/topologies.md explains it.
#pragma once

#include "comm/weighted_graph.h"

namespace near::comm {

/// Which ranks of a topology exchange data, and how much.
struct Pattern {
  WeightedGraph graph;            ///< its vertices are the ranks
  std::vector<int> dims, periods; ///< of a grid; empty for other topologies
};
/// The pattern of a Cartesian grid: each rank exchanges equally much with each of its neighbours.
Pattern pattern_of_grid(std::span<const int> dims, std::span<const int> periods);

/// The part of each process, by any numbers: its machine, for example.
using Parts = std::vector<std::uint64_t>;

/// Gives each process a rank of the pattern, which has as many. `kinds` begins with the largest parts; those of later kinds are
/// inside of them. The weight of the edges between parts of the first kind is made small; then, within each of these
/// parts, that between parts of the second kind, and so on. The processes keep their order wherever another one would not
/// be better, and within the smallest parts.
///
/// The ranks within a part depend on the later kinds of its own processes only: other processes may have any there.
std::vector<int> reordered_ranks(const Pattern& pattern, std::span<const Parts> kinds);

} // namespace near::comm
