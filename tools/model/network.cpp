// See network.h.
#include "model/network.h"

#include "pattern/grid.h"
#include "pattern/tree.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace near::model {
namespace {

using choice::Collective;
using choice::Facts;

/// Data in areas travel in chunks of about this length (coll/shared/exchange.cpp); a rank has room for this many of them.
constexpr double chunk = 32 << 10;
constexpr std::size_t room = 8;

/// The ranks of a machine, their memory and links, during one call.
class Ranks {
public:
  Ranks(const Network& network, const Shape& shape, int leader)
      : network_(network), shape_(shape), leader_node_(shape.node_of(leader)),
        processor_(static_cast<std::size_t>(shape.ranks)), memory_(static_cast<std::size_t>(shape.nodes)),
        outwards_(memory_.size()), inwards_(memory_.size()) {}

  double time(int rank) const { return processor_[at(rank)]; }
  double last() const { return *std::max_element(processor_.begin(), processor_.end()); }
  double leaves_node() const { return leaves_node_; }
  void wait(int rank, double until) { processor_[at(rank)] = std::max(time(rank), until); }

  /// A rank copies its own bytes to where others read them; returns when they can.
  double publish(int rank, double bytes) {
    double head = time(rank), tail = head + bytes * network_.copy_gap;
    memory_[at(shape_.node_of(rank))].pass(head, tail, bytes, network_.memory_gap);
    return processor_[at(rank)] = tail;
  }
  /// A rank reads another's published data once it sees `published`; `gap` is the time per byte.
  void read(int rank, int of, double bytes, double published, double gap) {
    const int from = shape_.node_of(of), to = shape_.node_of(rank);
    double head = std::max(time(rank), published + network_.flag + (from != to ? network_.crossing : 0));
    double tail = head + bytes * gap;
    memory_[at(from)].pass(head, tail, bytes, network_.memory_gap);
    if (from != to) {
      outwards_[at(from)].pass(head, tail, bytes, network_.link_gap);
      inwards_[at(to)].pass(head, tail, bytes, network_.link_gap);
      if (from == leader_node_) leaves_node_ += bytes;
    }
    processor_[at(rank)] = tail;
  }

private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const Network& network_;
  const Shape& shape_;
  int leader_node_;
  std::vector<double> processor_;
  std::vector<Part> memory_, outwards_, inwards_;
  double leaves_node_ = 0;
};

/// The lowest rank on each node, except on the leader's node, where it is the leader.
std::vector<int> heads_of(const Shape& shape, int leader) {
  std::vector<int> heads(static_cast<std::size_t>(shape.nodes), -1);
  for (int rank = shape.ranks - 1; rank >= 0; --rank)
    heads[static_cast<std::size_t>(shape.node_of(rank))] = rank;
  heads[static_cast<std::size_t>(shape.node_of(leader))] = leader;
  return heads;
}

/// No bytes count as one chunk, too.
int chunks_of(double bytes) { return std::max(1, static_cast<int>(std::ceil(bytes / chunk))); }
double bytes_of(int index, double bytes) { return std::min(chunk, bytes - index * chunk); }

void broadcast(const Network& network, const Shape& shape, Ranks& ranks, int leader, double bytes,
               bool by_node) {
  const std::vector<int> heads = heads_of(shape, leader);
  std::vector<double> finished; // by chunk
  for (int index = 0; index < chunks_of(bytes); ++index) {
    const double now = bytes_of(index, bytes);
    if (finished.size() >= room) ranks.wait(leader, finished[finished.size() - room]);
    const double published = ranks.publish(leader, now);
    std::vector<double> relayed(heads.size(), published);
    if (by_node)
      for (std::size_t node = 0; node < heads.size(); ++node)
        if (heads[node] >= 0 && heads[node] != leader) {
          ranks.read(heads[node], leader, now, published, network.copy_gap);
          relayed[node] = ranks.publish(heads[node], now);
        }
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const auto node = static_cast<std::size_t>(shape.node_of(rank));
      if (rank == leader || (by_node && heads[node] == rank)) continue;
      ranks.read(rank, by_node ? heads[node] : leader, now, relayed[node], network.copy_gap);
    }
    finished.push_back(ranks.last());
  }
}

void reduce_flat(const Network& network, const Shape& shape, Ranks& ranks, int leader, double bytes) {
  for (int index = 0; index < chunks_of(bytes); ++index) {
    const double now = bytes_of(index, bytes);
    std::vector<double> published(static_cast<std::size_t>(shape.ranks));
    for (int rank = 0; rank < shape.ranks; ++rank)
      if (rank != leader) published[static_cast<std::size_t>(rank)] = ranks.publish(rank, now);
    for (int rank = 0; rank < shape.ranks; ++rank)
      if (rank != leader)
        ranks.read(leader, rank, now, published[static_cast<std::size_t>(rank)], network.add_gap);
  }
}

/// Reduces in rows of consecutive ranks, whose heads combine them.
void reduce_grid(const Network& network, const Shape& shape, Ranks& ranks, int leader, double bytes) {
  const pattern::Grid grid(shape.ranks);
  auto head_of = [&](int row) { return row == grid.row_of(leader) ? leader : grid.first(row); };
  std::vector<double> published(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank)
    if (rank != head_of(grid.row_of(rank)))
      published[static_cast<std::size_t>(rank)] = ranks.publish(rank, bytes);
  for (int rank = 0; rank < shape.ranks; ++rank)
    if (const int head = head_of(grid.row_of(rank)); rank != head)
      ranks.read(head, rank, bytes, published[static_cast<std::size_t>(rank)], network.add_gap);
  for (int row = 0; row < grid.rows(); ++row)
    if (head_of(row) != leader)
      ranks.read(leader, head_of(row), bytes, ranks.time(head_of(row)), network.add_gap);
}

void reduce_shares(const Network& network, const Shape& shape, Ranks& ranks, int leader, double bytes) {
  for (int index = 0; bytes > 0 && index < chunks_of(bytes); ++index) {
    const double now = bytes_of(index, bytes), share = now / (shape.ranks - 1);
    for (int rank = 0; rank < shape.ranks; ++rank) (void)ranks.publish(rank, now);
    const double published = ranks.last();
    for (int step = 1; step < shape.ranks; ++step)
      for (int rank = 0; rank < shape.ranks; ++rank)
        if (rank != leader) ranks.read(rank, (rank + step) % shape.ranks, share, published, network.add_gap);
    for (int step = 1; step < shape.ranks; ++step) {
      const int rank = (leader + step) % shape.ranks;
      ranks.read(leader, rank, share, ranks.time(rank), network.copy_gap);
    }
  }
}

/// For ranks without an area: messages along a tree, each of which is one copy.
void along_tree(const Network& network, const Shape& shape, Ranks& ranks, int leader, double bytes,
                bool reduces) {
  for (int position = 1; position < shape.ranks; ++position) { // parents come before their children
    const int from_end = reduces ? shape.ranks - position : position;
    const pattern::BinomialTree tree((from_end + leader) % shape.ranks, shape.ranks, leader);
    const int own = tree.rank_of(from_end), parent = tree.parent();
    if (reduces)
      ranks.read(parent, own, bytes, ranks.time(own), network.add_gap);
    else
      ranks.read(own, parent, bytes, ranks.time(parent), network.copy_gap);
  }
}

} // namespace

bool take_profile(const profile::Profile& profile, Network& network) {
  constexpr double mebibyte = 1 << 20;
  for (std::size_t distance = 0; distance < profile::distances; ++distance) {
    const double copy = profile.store_cost[distance][0], half_trip = profile.short_time[distance][0];
    if (copy == 0 || half_trip == 0) continue;
    network.copy_gap = copy / mebibyte;
    network.flag = half_trip / 1000;
    return true;
  }
  return false;
}

OnMachine on_machine(const Network& network, const Shape& shape, const Facts& facts, int leader) {
  const std::string_view chosen = choose(facts).name;
  const auto bytes = static_cast<double>(facts.bytes);
  Ranks ranks(network, shape, leader);
  if (!facts.area)
    along_tree(network, shape, ranks, leader, bytes, facts.collective == Collective::reduce);
  else if (facts.collective == Collective::broadcast)
    broadcast(network, shape, ranks, leader, bytes, chosen == "shared_by_node");
  else if (chosen == "shared_grid")
    reduce_grid(network, shape, ranks, leader, bytes);
  else if (chosen == "shared_shares")
    reduce_shares(network, shape, ranks, leader, bytes);
  else
    reduce_flat(network, shape, ranks, leader, bytes);
  return {.leader = ranks.time(leader), .last = ranks.last(), .leaves_node = ranks.leaves_node()};
}

} // namespace near::model
