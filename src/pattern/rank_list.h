// Ranks in order, mostly without storage: the members of a collective group.
#pragma once

#include <span>

namespace near::pattern {

/// A list of distinct ranks. Position i holds the rank of the group's member i in the communicator or larger
/// group to which the list refers.
class RankList {
public:
  /// 0, 1, ... `size` - 1.
  static constexpr RankList all(int size) { return {0, 1, nullptr, size}; }
  /// `first`, `first` + `stride`, ...: `size` ranks. Leaders of equal blocks, for example.
  static constexpr RankList strided(int first, int stride, int size) {
    return {first, stride, nullptr, size};
  }
  /// These ranks; the memory must outlive the list and its copies.
  static constexpr RankList of(std::span<const int> ranks) {
    return {0, 0, ranks.data(), static_cast<int>(ranks.size())};
  }

  constexpr int size() const { return size_; }
  constexpr int operator[](int position) const {
    return listed_ != nullptr ? listed_[position] : first_ + position * stride_;
  }
  /// The position of `rank`, or -1 if it is not on the list.
  constexpr int find(int rank) const {
    for (int position = 0; position < size_; ++position)
      if ((*this)[position] == rank) return position;
    return -1;
  }

private:
  constexpr RankList(int first, int stride, const int* listed, int size)
      : first_(first), stride_(stride), size_(size), listed_(listed) {}
  int first_, stride_, size_;
  const int* listed_; ///< null: given by first_ and stride_
};

} // namespace near::pattern
