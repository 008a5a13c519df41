// Ranks as a grid, for exchanges in two steps: along rows, then along columns.
//
// If every rank reads every other, the cache line that a rank has written goes to all others one after another. In two
// steps it goes to the ranks of a row, and a second line to one rank of each other row. For p ranks these are 2 sqrt(p)
// transfers instead of p, at the price of one more wait.
#pragma once

namespace near::pattern {

/// `size` ranks in rows of consecutive ranks. All rows have the same length, except that the last one may be shorter.
class Grid {
public:
  explicit Grid(int size) : size_(size) {
    while (width_ * width_ < size) ++width_;
  }
  int rows() const { return (size_ + width_ - 1) / width_; }
  int row_of(int rank) const { return rank / width_; }
  /// The first rank of a row.
  int first(int row) const { return row * width_; }
  int length(int row) const { return row + 1 < rows() ? width_ : size_ - first(row); }
  /// The rank in a row that `rank` reads in the second step. In its own row that is `rank` itself.
  int in_column(int row, int rank) const { return first(row) + rank % width_ % length(row); }

private:
  int size_, width_ = 1;
};

} // namespace near::pattern
