// Chooses the ranks of a topology's communicator so that neighbours run near each other. The functions here know nothing
// about processes: the result depends only on the pattern and on the parts in which the processes are. See doc/topologies.md.
#pragma once

#include "comm/weighted_graph.h"

namespace near::comm {

/// Which ranks of a topology exchange data, and how much.
struct Pattern {
  WeightedGraph graph;            ///< its vertices are the ranks
  std::vector<int> dims, periods; ///< for a grid; empty for other topologies
};
/// The pattern of a Cartesian grid: each rank exchanges the same amount with each of its neighbours.
Pattern pattern_of_grid(std::span<const int> dims, std::span<const int> periods);

/// The part of each process, as an arbitrary number: its machine, for example.
using Parts = std::vector<std::uint64_t>;

/// Gives each process a rank of the pattern, which has as many ranks. `kinds` begins with the largest parts; parts of later
/// kinds lie inside those of earlier ones. The weight of the edges between parts of the first kind is minimised; then, within
/// each of these parts, the weight between parts of the second kind, and so on. Processes keep their order within the smallest
/// parts, and wherever another order would not be better.
///
/// The ranks within a part depend only on the later kinds of its own processes: other processes may have any values there.
std::vector<int> reordered_ranks(const Pattern& pattern, std::span<const Parts> kinds);

} // namespace near::comm
