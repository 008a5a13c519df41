// The two halves of ring algorithms on one vector that is cut into a slice per rank.
#pragma once

#include "coll/collective_group.h"

namespace near::coll {

/// Rank `index`'s slice of the vector: sizes differ by at most one element.
inline Buffer ring_slice(const Buffer& vector, int index, int size) {
  MPI_Count begin = vector.count / size * index + vector.count % size * index / size;
  MPI_Count end = vector.count / size * (index + 1) + vector.count % size * (index + 1) / size;
  return slice(vector, begin, end - begin);
}

/// `own` is every rank's contribution, which may lie in `vector`. Afterwards slice r of rank r's vector is the reduction
/// of all slices r, and the others hold partial results. For commutative operations. p - 1 rounds.
Result ring_reduce_scatter(CollectiveGroup& group, const Operation& operation, const Buffer& own,
                           const Buffer& vector);

/// Spreads slice r of rank r's vector to all ranks. p - 1 rounds.
Result ring_allgather(CollectiveGroup& group, const Buffer& vector);

} // namespace near::coll
