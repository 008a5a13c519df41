// A ring of the ranks of a collective group: data is cut into one slice per rank, and in each round every rank passes a slice on to
// its right neighbour while another arrives from the left.
#pragma once

#include "abi/types.h"

namespace near::pattern {

class Ring {
public:
  /// `size` ranks, from the point of view of `rank`. If slices are numbered
  /// differently from ranks, `rank` is the number of the slice that begins here.
  Ring(int rank, int size) : rank_(rank), size_(size) {}
  int left() const { return (rank_ - 1 + size_) % size_; }
  int right() const { return (rank_ + 1) % size_; }
  int rounds() const { return size_ - 1; }

  /// The slices that this rank exchanges in a round.
  struct Round {
    int leaves, arrives;
  };
  /// Every rank begins with its own slice and receives all others.
  Round gathering(int round) const {
    return {(rank_ - round + size_) % size_, (rank_ - round - 1 + size_) % size_};
  }
  /// Slice s starts at rank s + 1 and collects a contribution at each stop until it reaches rank s.
  Round reducing(int round) const {
    return {(rank_ - 1 - round + size_) % size_, (rank_ - 2 - round + 2 * size_) % size_};
  }

private:
  int rank_, size_;
};

/// A part of a vector, in elements.
struct Part {
  MPI_Count begin, count;
};
/// Slice `index` of a vector that is cut for `size` ranks; the slices' sizes differ by at most one element.
inline Part slice_of(MPI_Count count, int index, int size) {
  const MPI_Count begin = count / size * index + count % size * index / size;
  const MPI_Count end = count / size * (index + 1) + count % size * (index + 1) / size;
  return {begin, end - begin};
}
/// `pieces` pieces, starting at `first`, of a vector that is cut for `size` ranks into pieces of equal length; the last pieces may
/// be shorter or empty.
inline Part pieces_of(MPI_Count count, int first, int pieces, int size) {
  const MPI_Count each = (count + size - 1) / size;
  const MPI_Count begin = each * first < count ? each * first : count;
  const MPI_Count end = each * (first + pieces) < count ? each * (first + pieces) : count;
  return {begin, end - begin};
}

} // namespace near::pattern
