// A binomial tree over a collective group. Ranks have positions, the root's is 0; the parent of a position is the
// position without its lowest set bit, so the subtree of position q is [q, q + reach) cut off at the group's
// size.
//
//        0              p = 6, by position
//      / | \            reach:  0 -> 8   2 -> 2   4 -> 4   odd -> 1
//     1  2  4
//        |  |
//        3  5
#pragma once

#include "coll/collective_group.h"

#include <algorithm>

namespace near::coll {

class BinomialTree {
public:
  BinomialTree(const CollectiveGroup& group, int root)
      : size_(group.size()), root_(root), position_((group.rank() - root + group.size()) % group.size()) {
    while (reach_ < size_ && (position_ & reach_) == 0) reach_ *= 2;
  }
  int position() const { return position_; }
  bool is_root() const { return position_ == 0; }
  int rank_of(int position) const { return (position + root_) % size_; }
  int parent() const { return rank_of(position_ & (position_ - 1)); }
  /// Children stand at the distances 1, 2, 4, ... below `reach()`, as far as they exist.
  int reach() const { return reach_; }
  bool has_child(int distance) const { return position_ + distance < size_; }
  int child(int distance) const { return rank_of(position_ + distance); }
  /// Ranks in the subtree, this one included.
  int subtree() const { return std::min(reach_, size_ - position_); }
  /// Ranks in the subtree of the child at that distance.
  int subtree_of_child(int distance) const { return std::min(distance, size_ - position_ - distance); }

private:
  int size_, root_, position_, reach_ = 1;
};

} // namespace near::coll
