// A binomial tree over the ranks of a collective group. Each rank has a position; the root's is 0. The parent of a position is
// the position without its lowest set bit, so the subtree of position q is [q, q + reach), cut off at the group's size.
//
//        0              p = 6, by position
//      / | \            reach:  0 -> 8   2 -> 2   4 -> 4   odd -> 1
//     1  2  4
//        |  |
//        3  5
#pragma once

#include "base/result.h"

#include <algorithm>

namespace near::pattern {

class BinomialTree {
public:
  /// The position of `rank` in the tree of `size` ranks.
  BinomialTree(int rank, int size, int root)
      : size_(size), root_(root), position_((rank - root + size) % size) {
    while (reach_ < size_ && (position_ & reach_) == 0) reach_ *= 2;
  }
  int position() const { return position_; }
  bool is_root() const { return position_ == 0; }
  int rank_of(int position) const { return (position + root_) % size_; }
  int parent() const { return rank_of(position_ & (position_ - 1)); }
  /// Children are at the distances 1, 2, 4, ... below `reach()`, as far as they exist.
  int reach() const { return reach_; }
  bool has_child(int distance) const { return position_ + distance < size_; }
  int child(int distance) const { return rank_of(position_ + distance); }
  /// The number of ranks in the subtree, including this one.
  int subtree() const { return std::min(reach_, size_ - position_); }
  /// The number of ranks in the subtree of the child at that distance.
  int subtree_of_child(int distance) const { return std::min(distance, size_ - position_ - distance); }

private:
  int size_, root_, position_, reach_ = 1;
};

/// The part of a rank for data that goes down the tree: receive() from the parent, then send(distance) to each child, one after
/// another. The child with the largest subtree is first, since its data have the longest way to go.
template <class Receive, class Send>
base::Result go_down(const BinomialTree& tree, Receive&& receive, Send&& send) {
  if (!tree.is_root()) NEAR_TRY(receive());
  for (int distance = tree.reach() / 2; distance >= 1; distance /= 2)
    if (tree.has_child(distance)) NEAR_TRY(send(distance));
  return {};
}

} // namespace near::pattern
