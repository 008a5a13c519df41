// Divides a graph into two sides of given sizes so that the edges between them have little weight.
//
// Candidates are orders that the caller proposes, and sides that grow from a vertex, always by the vertex that adds least to the
// cut. They are improved as in C. M. Fiduccia and R. M. Mattheyses, "A linear-time heuristic for improving network partitions"
// (DAC 1982), with a heap instead of buckets, since weights may be large. All arithmetic is on integers, and ties are broken by
// the numbers of vertices, so all processes find the same sides.
#pragma once

#include "comm/weighted_graph.h"

namespace near::comm {

/// Returns the side of each vertex, 0 or 1. Exactly `first` vertices are on side 0. Each of `orders` contains every
/// vertex once; its first `first` vertices are a candidate for side 0.
std::vector<int> bisect(const WeightedGraph& graph, int first, std::span<const std::vector<int>> orders);

} // namespace near::comm
