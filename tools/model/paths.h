// The paths of messages between ranks, and the delays of all messages of one round of a ring at the same time.
#pragma once

#include "model/network.h"
#include "model/rounds.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace near::model {

class Paths {
public:
  Paths(const Network& network, const Shape& shape) : network_(network), shape_(shape) {}

  int machine_of(int rank) const { return rank / shape_.ranks; }
  int node_of(int rank) const { return shape_.node_of(rank % shape_.ranks); }
  /// Whether a rank is on a different node from the NIC.
  bool is_far(int rank) const { return node_of(rank) != shape_.nic_node; }
  bool is_inside(int from, int to) const { return machine_of(from) == machine_of(to); }
  /// Whether data waits until its receiver is ready (a rendezvous).
  bool waits(int from, int to, double bytes) const {
    return bytes > static_cast<double>(network_.eager) && !is_inside(from, to);
  }
  /// How long the first byte is under way.
  double way(int from, int to) const {
    if (is_inside(from, to)) return network_.flag + (node_of(from) != node_of(to) ? network_.crossing : 0);
    return network_.latency + (is_far(from) ? network_.crossing : 0) + (is_far(to) ? network_.crossing : 0);
  }
  /// From the sending of an RTS until it has been read, and likewise for the answer.
  double announcing(int from, int to) const { return way(from, to) + network_.overhead; }

  /// Visits the links that a message passes: visit(machine, node, outwards).
  template <class Visit>
  void for_each_link(int from, int to, Visit&& visit) const {
    auto cross = [&](int machine, int one, int other) {
      if (one == other) return;
      visit(machine, one, true);
      visit(machine, other, false);
    };
    if (is_inside(from, to)) return cross(machine_of(from), node_of(from), node_of(to));
    cross(machine_of(from), node_of(from), shape_.nic_node);
    cross(machine_of(to), shape_.nic_node, node_of(to));
  }

  /// How many messages use each link at the same time.
  class Shares {
  public:
    explicit Shares(const Shape& shape)
        : nodes_(shape.nodes), uses_(static_cast<std::size_t>(shape.machines * shape.nodes * 2)) {}
    int& at(int machine, int node, bool outwards) {
      return uses_[static_cast<std::size_t>(2 * (machine * nodes_ + node) + (outwards ? 1 : 0))];
    }

  private:
    int nodes_;
    std::vector<int> uses_;
  };
  void count(int from, int to, Shares& shares) const {
    for_each_link(from, to,
                  [&](int machine, int node, bool outwards) { ++shares.at(machine, node, outwards); });
  }
  /// One exchange of a ring in which each link is shared by this many.
  Hop hop_of(int from, int to, double bytes, bool reduces, Shares& shares) const {
    const bool inside = is_inside(from, to);
    double gap = inside ? network_.copy_gap : network_.gap;
    for_each_link(from, to, [&](int machine, int node, bool outwards) {
      gap = std::max(gap, network_.link_gap * shares.at(machine, node, outwards));
    });
    const bool waits_for_it = waits(from, to, bytes);
    return {.announce = network_.overhead + (waits_for_it ? announcing(from, to) : 0),
            .waits = waits_for_it,
            .answer = waits_for_it ? announcing(from, to) : 0,
            .leaves = bytes * gap + (!inside && is_far(from) ? network_.crossing : 0),
            .arrives = bytes * gap + way(from, to) + network_.overhead,
            .after = reduces ? bytes * network_.add_gap : 0};
  }

private:
  const Network& network_;
  const Shape& shape_;
};

} // namespace near::model
