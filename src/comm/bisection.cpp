// See bisection.h.
#include "comm/bisection.h"

#include <algorithm>
#include <array>
#include <queue>

namespace near::comm {
namespace {

/// A vertex, and by how much the cut shrinks if it changes sides. The largest gain comes first, then the lowest vertex.
struct Move {
  std::int64_t gain;
  int vertex;
  bool operator<(const Move& other) const {
    return gain != other.gain ? gain < other.gain : vertex > other.vertex;
  }
};

class Bisection {
public:
  Bisection(const WeightedGraph& graph, int first)
      : graph_(graph), first_(first), effort_(std::clamp(64 * graph.cost(), least_effort, most_effort)) {}

  std::vector<int> find(std::span<const std::vector<int>> orders) {
    for (const std::vector<int>& order : orders) {
      std::vector<int> side(order.size(), 1);
      for (int i = 0; i < first_; ++i) side[at(order[at(i)])] = 0;
      consider(std::move(side));
    }
    // The ends of a graph are good starting vertices, unless the caller knows better ones. Small graphs can afford others.
    std::vector<int> seeds;
    if (orders.empty()) {
      seeds.push_back(farthest_from(0));
      seeds.push_back(farthest_from(seeds[0]));
    }
    const int further = std::clamp(256 / graph_.size(), 0, graph_.size());
    for (int i = 0; i < further; ++i)
      seeds.push_back(static_cast<int>(std::int64_t{i} * graph_.size() / further));
    for (const int seed : seeds)
      for (const int side : {0, 1})
        if (effort_ > 0 || best_.empty()) consider(grown_from(seed, side));
    return std::move(best_);
  }

private:
  // Numbers of heap changes: some milliseconds, and less than a second.
  static constexpr std::int64_t least_effort = 1 << 15, most_effort = 1 << 21;

  int size_of(int side) const { return side == 0 ? first_ : graph_.size() - first_; }

  void consider(std::vector<int> side) {
    while (effort_ > 0 && improve(side)) {}
    const std::int64_t cut = graph_.cut(side);
    effort_ -= graph_.cost() / 4;
    if (!best_.empty() && cut >= best_cut_) return;
    best_ = std::move(side);
    best_cut_ = cut;
  }

  /// The last vertex that a breadth-first walk from this one reaches.
  int farthest_from(int vertex) const {
    std::vector<bool> seen(at(graph_.size()));
    std::vector<int> walk{vertex};
    seen[at(vertex)] = true;
    for (std::size_t i = 0; i < walk.size(); ++i)
      for (const auto& neighbour : graph_.neighbours(walk[i]))
        if (!seen[at(neighbour.vertex)]) {
          seen[at(neighbour.vertex)] = true;
          walk.push_back(neighbour.vertex);
        }
    return walk.back();
  }

  /// Sides, one of which has grown from `seed`, vertex by vertex.
  std::vector<int> grown_from(int seed, int growing) {
    std::vector<int> side(at(graph_.size()), 1 - growing);
    std::vector<std::int64_t> gain(side.size(), 0);
    for (int vertex = 0; vertex < graph_.size(); ++vertex)
      for (const auto& neighbour : graph_.neighbours(vertex)) gain[at(vertex)] -= neighbour.weight;
    std::priority_queue<Move> moves;
    moves.push({gain[at(seed)], seed});
    int unseen = 0; // all lower vertices have been taken
    for (int taken = 0; taken < size_of(growing);) {
      if (moves.empty()) { // the next component
        while (side[at(unseen)] == growing) ++unseen;
        moves.push({gain[at(unseen)], unseen});
      }
      const Move move = moves.top();
      moves.pop();
      if (side[at(move.vertex)] == growing || move.gain != gain[at(move.vertex)]) continue;
      side[at(move.vertex)] = growing;
      ++taken;
      for (const auto& neighbour : graph_.neighbours(move.vertex)) {
        if (side[at(neighbour.vertex)] == growing) continue;
        gain[at(neighbour.vertex)] += 2 * neighbour.weight;
        moves.push({gain[at(neighbour.vertex)], neighbour.vertex});
        --effort_;
      }
    }
    return side;
  }

  /// One pass: moves each vertex at most once, always the one with the largest gain, from a side that is full. Keeps the
  /// best state that it has passed. Returns false if that is the initial state.
  bool improve(std::vector<int>& side) {
    std::vector<std::int64_t> gain(side.size(), 0);
    std::array<std::vector<Move>, 2> possible;
    for (int vertex = 0; vertex < graph_.size(); ++vertex) {
      std::int64_t inside = 0, outside = 0;
      for (const auto& neighbour : graph_.neighbours(vertex))
        (side[at(vertex)] == side[at(neighbour.vertex)] ? inside : outside) += neighbour.weight;
      gain[at(vertex)] = outside - inside;
      possible[at(side[at(vertex)])].push_back({outside - inside, vertex});
    }
    std::array<std::priority_queue<Move>, 2> moves{std::priority_queue<Move>({}, std::move(possible[0])),
                                                   std::priority_queue<Move>({}, std::move(possible[1]))};
    effort_ -= graph_.size();
    std::vector<bool> moved(side.size());
    auto best_of = [&](int from) {
      auto& queue = moves[at(from)];
      while (!queue.empty() &&
             (moved[at(queue.top().vertex)] || queue.top().gain != gain[at(queue.top().vertex)]))
        queue.pop();
      return !queue.empty();
    };

    std::vector<int> order;
    std::int64_t won = 0, most_won = 0;
    std::size_t kept = 0;
    const std::size_t patience = 64 + side.size() / 16;
    int surplus = 0; // of side 0
    while (order.size() < kept + patience) {
      const bool has_first = best_of(0), has_second = best_of(1);
      int from = surplus > 0 ? 0 : 1;
      if (surplus == 0 && has_first && (!has_second || !(moves[0].top() < moves[1].top()))) from = 0;
      if (!(from == 0 ? has_first : has_second)) break;
      const Move move = moves[at(from)].top();
      moves[at(from)].pop();
      moved[at(move.vertex)] = true;
      side[at(move.vertex)] = 1 - from;
      surplus += from == 0 ? -1 : 1;
      won += move.gain;
      order.push_back(move.vertex);
      for (const auto& neighbour : graph_.neighbours(move.vertex)) {
        const int there = side[at(neighbour.vertex)];
        gain[at(neighbour.vertex)] += there == from ? 2 * neighbour.weight : -2 * neighbour.weight;
        if (moved[at(neighbour.vertex)]) continue;
        moves[at(there)].push({gain[at(neighbour.vertex)], neighbour.vertex});
        --effort_;
      }
      if (surplus == 0 && won > most_won) {
        most_won = won;
        kept = order.size();
      }
    }
    for (std::size_t i = kept; i < order.size(); ++i) side[at(order[i])] = 1 - side[at(order[i])];
    return kept > 0;
  }

  const WeightedGraph& graph_;
  const int first_;
  std::int64_t effort_; ///< what may still be spent on improving sides
  std::vector<int> best_;
  std::int64_t best_cut_ = 0;
};

} // namespace

std::vector<int> bisect(const WeightedGraph& graph, int first, std::span<const std::vector<int>> orders) {
  return Bisection(graph, first).find(orders);
}

} // namespace near::comm
