// See reorder.h.
#include "comm/reorder.h"

#include "comm/bisection.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace near::comm {
namespace {

bool all_equal(std::span<const int> values) {
  return std::all_of(values.begin(), values.end(), [&](int value) { return value == values.front(); });
}

/// Divides ranks of a pattern into parts.
class Division {
public:
  explicit Division(const Pattern& pattern) : pattern_(pattern), index_(at(pattern.graph.size()), -1) {
    // Dimensions of extent 1 do not distinguish ranks.
    int stride = 1;
    for (std::size_t i = pattern.dims.size(); i-- > 0; stride *= pattern.dims[i])
      if (pattern.dims[i] > 1) dimensions_.push_back({pattern.dims[i], pattern.periods[i] != 0, stride});
  }

  /// The part of each of `ranks`, which are in ascending order. sizes[i] of them are in part i.
  std::vector<int> divide(const std::vector<int>& ranks, const std::vector<int>& sizes) {
    const WeightedGraph graph = pattern_.graph.part(ranks, index_);
    std::vector<int> found(ranks.size());
    std::vector<int> all(ranks.size());
    std::iota(all.begin(), all.end(), 0);
    halve(graph, ranks, all, sizes, 0, found);
    const std::vector<int> boxes = in_boxes(ranks, sizes);
    return !boxes.empty() && graph.cut(boxes) <= graph.cut(found) ? boxes : found;
  }

  /// The weight of the edges between these parts of some ranks.
  std::int64_t cut(const std::vector<int>& ranks, const std::vector<int>& part_of) {
    return pattern_.graph.part(ranks, index_).cut(part_of);
  }

private:
  struct Dimension {
    int extent;
    bool is_periodic;
    int stride;
    int coordinate(int rank) const { return rank / stride % extent; }
  };
  /// The coordinates that some ranks have in one dimension.
  struct Interval {
    int first, last;
    int extent() const { return last - first + 1; }
  };

  std::vector<Interval> bounds_of(const std::vector<int>& ranks) const {
    std::vector<Interval> bounds;
    for (const Dimension& dimension : dimensions_) {
      Interval bound{dimension.extent, -1};
      for (const int rank : ranks) {
        bound.first = std::min(bound.first, dimension.coordinate(rank));
        bound.last = std::max(bound.last, dimension.coordinate(rank));
      }
      bounds.push_back(bound);
    }
    return bounds;
  }

  /// The ranks of a grid ordered by their coordinates, once for each choice of the first dimension.
  std::vector<std::vector<int>> orders_of(const std::vector<int>& ranks) const {
    std::vector<std::vector<int>> orders;
    for (std::size_t first = 0; first < dimensions_.size(); ++first) {
      std::vector<std::pair<std::int64_t, int>> keys;
      for (std::size_t at = 0; at < ranks.size(); ++at) {
        std::int64_t key = 0;
        for (std::size_t i = 0; i < dimensions_.size(); ++i) {
          const Dimension& dimension = dimensions_[(first + i) % dimensions_.size()];
          key = key * dimension.extent + dimension.coordinate(ranks[at]);
        }
        keys.emplace_back(key, static_cast<int>(at));
      }
      std::sort(keys.begin(), keys.end());
      std::vector<int> order;
      for (const auto& [key, vertex] : keys) order.push_back(vertex);
      orders.push_back(std::move(order));
    }
    return orders;
  }

  /// Divides some vertices of `graph` into parts, by halves, and writes
  /// the part of each. sizes[0] is the size of part `first_part`.
  void halve(const WeightedGraph& graph, const std::vector<int>& ranks, const std::vector<int>& vertices,
             std::span<const int> sizes, int first_part, std::vector<int>& found) {
    if (sizes.size() == 1) {
      for (const int vertex : vertices) found[at(vertex)] = first_part;
      return;
    }
    const auto half = sizes.size() / 2;
    const int first = std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(half), 0);
    std::vector<int> inside;
    for (const int vertex : vertices) inside.push_back(ranks[at(vertex)]);
    const std::vector<int> side = bisect(pattern_.graph.part(inside, index_), first, orders_of(inside));
    std::vector<int> halves[2];
    for (std::size_t i = 0; i < vertices.size(); ++i) halves[at(side[i])].push_back(vertices[i]);
    halve(graph, ranks, halves[0], sizes.first(half), first_part, found);
    halve(graph, ranks, halves[1], sizes.subspan(half), first_part + static_cast<int>(half), found);
  }

  /// The best division into equal boxes, if the ranks are a box of a grid that can be divided that way.
  std::vector<int> in_boxes(const std::vector<int>& ranks, const std::vector<int>& sizes) const {
    if (dimensions_.empty() || !all_equal(sizes)) return {};
    const std::vector<Interval> bounds = bounds_of(ranks);
    std::int64_t cells = 1;
    for (const Interval& bound : bounds) cells *= bound.extent();
    if (cells != static_cast<std::int64_t>(ranks.size())) return {};
    Boxes boxes{bounds, std::vector<int>(bounds.size(), 1), {}, std::numeric_limits<std::int64_t>::max()};
    search(boxes, 0, static_cast<int>(sizes.size()), 0);
    if (boxes.best.empty()) return {};
    std::vector<int> part_of;
    for (const int rank : ranks) {
      int part = 0;
      for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        const int extent = bounds[i].extent() / boxes.best[i];
        part = part * boxes.best[i] + (dimensions_[i].coordinate(rank) - bounds[i].first) / extent;
      }
      part_of.push_back(part);
    }
    return part_of;
  }

  /// A search for the numbers of boxes in each dimension.
  struct Boxes {
    const std::vector<Interval>& bounds;
    std::vector<int> counts, best;
    std::int64_t best_cut;
  };
  /// Divides the dimensions from `next` on into `left` boxes; `cut` is
  /// the cut of the preceding dimensions, in halves of a box's faces.
  void search(Boxes& boxes, std::size_t next, int left, std::int64_t cut) const {
    if (cut >= boxes.best_cut) return;
    if (next == dimensions_.size()) {
      if (left != 1) return;
      boxes.best = boxes.counts;
      boxes.best_cut = cut;
      return;
    }
    std::int64_t across = 1; // the edges that one boundary across this dimension cuts
    for (std::size_t i = 0; i < dimensions_.size(); ++i)
      if (i != next) across *= boxes.bounds[i].extent();
    const int extent = boxes.bounds[next].extent();
    const bool wraps = dimensions_[next].is_periodic && extent == dimensions_[next].extent;
    for (int count = 1; count <= std::min(left, extent); ++count) {
      if (left % count != 0 || extent % count != 0) continue;
      boxes.counts[next] = count;
      search(boxes, next + 1, left / count, cut + across * (count - 1 + (wraps && count > 1 ? 1 : 0)));
    }
  }

  const Pattern& pattern_;
  std::vector<Dimension> dimensions_;
  std::vector<int> index_; ///< for WeightedGraph::part
};

class Reordering {
public:
  Reordering(const Pattern& pattern, std::span<const Parts> kinds)
      : division_(pattern), kinds_(kinds), rank_of_(at(pattern.graph.size())) {}

  std::vector<int> find() {
    std::vector<int> all(rank_of_.size());
    std::iota(all.begin(), all.end(), 0);
    give(all, all, 0);
    return std::move(rank_of_);
  }

private:
  /// Gives these ranks to these processes. Both are in ascending order.
  void give(const std::vector<int>& processes, const std::vector<int>& ranks, std::size_t kind) {
    if (kind == kinds_.size() || processes.size() == 1) {
      for (std::size_t i = 0; i < processes.size(); ++i) rank_of_[at(processes[i])] = ranks[i];
      return;
    }
    std::map<std::uint64_t, int> numbers;
    std::vector<int>
        present; // the part of each process, and so of the rank it has if processes keep their order
    for (const int process : processes)
      present.push_back(
          numbers.try_emplace(kinds_[kind][at(process)], static_cast<int>(numbers.size())).first->second);
    if (numbers.size() == 1) return give(processes, ranks, kind + 1);
    std::vector<int> sizes(numbers.size(), 0);
    for (const int part : present) ++sizes[at(part)];

    std::vector<int> part_of = division_.divide(ranks, sizes);
    if (division_.cut(ranks, part_of) >= division_.cut(ranks, present)) part_of = present;
    std::vector<std::vector<int>> its_processes(sizes.size()), its_ranks(sizes.size());
    for (std::size_t i = 0; i < processes.size(); ++i) {
      its_processes[at(present[i])].push_back(processes[i]);
      its_ranks[at(part_of[i])].push_back(ranks[i]);
    }
    for (std::size_t part = 0; part < sizes.size(); ++part)
      give(its_processes[part], its_ranks[part], kind + 1);
  }

  Division division_;
  std::span<const Parts> kinds_;
  std::vector<int> rank_of_; ///< by process
};

} // namespace

Pattern pattern_of_grid(std::span<const int> dims, std::span<const int> periods) {
  int ranks = 1;
  for (const int extent : dims) ranks *= extent;
  std::vector<WeightedEdge> edges;
  int stride = ranks;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    stride /= dims[i];
    for (int rank = 0; rank < ranks; ++rank) {
      const bool is_last = rank / stride % dims[i] == dims[i] - 1;
      if (!is_last) edges.push_back({rank, rank + stride, 1});
      if (is_last && periods[i] != 0) edges.push_back({rank, rank - stride * (dims[i] - 1), 1});
    }
  }
  return {
      WeightedGraph(ranks, std::move(edges)), {dims.begin(), dims.end()}, {periods.begin(), periods.end()}};
}

std::vector<int> reordered_ranks(const Pattern& pattern, std::span<const Parts> kinds) {
  return Reordering(pattern, kinds).find();
}

} // namespace near::comm
