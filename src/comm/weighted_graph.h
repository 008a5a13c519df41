// A graph of processes that exchange data, from which reorder.h chooses the ranks of the processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace near::comm {

/// The position in a vector for a rank or a vertex.
inline std::size_t at(int number) { return static_cast<std::size_t>(number); }

struct WeightedEdge {
  int one, other; ///< vertices
  std::int64_t weight;
};

/// An undirected graph without loops. At most one edge joins two vertices.
class WeightedGraph {
public:
  struct Neighbour {
    int vertex;
    std::int64_t weight;
  };

  WeightedGraph() = default;
  /// Vertices are numbered from 0. Edges between the same two vertices, in either direction, are merged into one
  /// with the sum of their weights. Loops are omitted.
  WeightedGraph(int vertices, std::vector<WeightedEdge> edges);

  int size() const { return static_cast<int>(first_.size()) - 1; }
  /// The number of vertices plus twice the number of edges: the cost of one walk over the graph.
  std::int64_t cost() const { return static_cast<std::int64_t>(first_.size() + neighbours_.size()); }
  std::span<const Neighbour> neighbours(int vertex) const {
    const auto at = static_cast<std::size_t>(vertex);
    return std::span(neighbours_).subspan(first_[at], first_[at + 1] - first_[at]);
  }
  /// The weight of the edges between vertices in different parts. `part_of`: by vertex.
  std::int64_t cut(std::span<const int> part_of) const;
  /// The graph of some of the vertices, listed in ascending order, and of the edges between them. Its vertex i is
  /// vertices[i]. `index` has an element for each vertex of this graph; all are -1 before and after the call.
  WeightedGraph part(std::span<const int> vertices, std::vector<int>& index) const;

private:
  std::vector<std::size_t> first_ = {
      0};                             ///< by vertex, where its neighbours begin; the last one: their number
  std::vector<Neighbour> neighbours_; ///< for each vertex in ascending order
};

} // namespace near::comm
