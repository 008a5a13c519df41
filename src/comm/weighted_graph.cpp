// See weighted_graph.h.
#include "comm/weighted_graph.h"

#include <algorithm>
#include <tuple>

namespace near::comm {

WeightedGraph::WeightedGraph(int vertices, std::vector<WeightedEdge> edges) {
  // Each edge in both directions, ordered by where it begins.
  std::erase_if(edges, [](const WeightedEdge& edge) { return edge.one == edge.other; });
  const std::size_t given = edges.size();
  edges.reserve(2 * given);
  for (std::size_t i = 0; i < given; ++i) edges.push_back({edges[i].other, edges[i].one, edges[i].weight});
  auto ends = [](const WeightedEdge& edge) { return std::tuple(edge.one, edge.other); };
  std::sort(edges.begin(), edges.end(),
            [&](const WeightedEdge& a, const WeightedEdge& b) { return ends(a) < ends(b); });

  first_.assign(static_cast<std::size_t>(vertices) + 1, 0);
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (i > 0 && ends(edges[i]) == ends(edges[i - 1])) {
      neighbours_.back().weight += edges[i].weight;
    } else {
      neighbours_.push_back({edges[i].other, edges[i].weight});
      ++first_[static_cast<std::size_t>(edges[i].one) + 1];
    }
  for (std::size_t vertex = 1; vertex < first_.size(); ++vertex) first_[vertex] += first_[vertex - 1];
}

std::int64_t WeightedGraph::cut(std::span<const int> part_of) const {
  std::int64_t cut = 0;
  for (int vertex = 0; vertex < size(); ++vertex)
    for (const Neighbour& neighbour : neighbours(vertex))
      if (vertex < neighbour.vertex &&
          part_of[static_cast<std::size_t>(vertex)] != part_of[static_cast<std::size_t>(neighbour.vertex)])
        cut += neighbour.weight;
  return cut;
}

WeightedGraph WeightedGraph::part(std::span<const int> vertices, std::vector<int>& index) const {
  WeightedGraph made;
  for (std::size_t i = 0; i < vertices.size(); ++i)
    index[static_cast<std::size_t>(vertices[i])] = static_cast<int>(i);
  for (const int vertex : vertices) {
    for (const Neighbour& neighbour : neighbours(vertex)) {
      const int inside = index[static_cast<std::size_t>(neighbour.vertex)];
      if (inside >= 0) made.neighbours_.push_back({inside, neighbour.weight});
    }
    made.first_.push_back(made.neighbours_.size());
  }
  for (const int vertex : vertices) index[static_cast<std::size_t>(vertex)] = -1;
  return made;
}

} // namespace near::comm
