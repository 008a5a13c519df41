// The two halves of ring algorithms on one vector that is cut into a slice per rank.
#pragma once

#include "coll/collective_group.h"
#include "pattern/ring.h"

namespace near::coll {

/// Rank `index`'s slice of the vector: sizes differ by at most one element.
inline Buffer ring_slice(const Buffer& vector, int index, int size) {
  const pattern::Part part = pattern::slice_of(vector.count, index, size);
  return slice(vector, part.begin, part.count);
}

/// `own` is every rank's contribution, which may lie in `vector`. Afterwards slice r of rank r's vector is the reduction
/// of all slices r, and the others hold partial results. For commutative operations. p - 1 rounds.
Result ring_reduce_scatter(CollectiveGroup& group, const Operation& operation, const Buffer& own,
                           const Buffer& vector);

/// Spreads slice r of rank r's vector to all ranks. p - 1 rounds.
Result ring_allgather(CollectiveGroup& group, const Buffer& vector);

} // namespace near::coll
