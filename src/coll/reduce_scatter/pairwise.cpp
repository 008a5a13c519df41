// Reduce-scatter by pairwise exchange, for commutative operations. R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005).
// Cost: (p-1) alpha + n (p-1)/p (beta + gamma), n being the whole vector. Each part is reduced at one rank in
// a fixed order, so its bits do not change from run to run. In each round one rank reads each.
#include "coll/algorithms.h"
#include "coll/reduce_scatter/partition.h"

namespace near::coll {

Result reduce_scatter_pairwise(CollectiveGroup& group, const Call& call) {
  const int rank = group.rank(), size = group.size();
  const Partition partition(call, size);
  const Buffer own = partition.part(rank);
  Datatype& type = *own.type;

  // In place the result's memory holds contributions until the last one has left.
  Buffer sum = call.receive, incoming;
  sum.count = own.count;
  if (call.in_place) NEAR_TRY(group.scratch(own.count, type, sum));
  NEAR_TRY(group.scratch(own.count, type, incoming));
  NEAR_TRY(group.copy(own, sum));
  for (int round = 1; round < size; ++round) {
    const int to = (rank + round) % size, from = (rank - round + size) % size;
    const Buffer out = partition.part(to);
    if (out.bytes() != 0) NEAR_TRY(group.start_send(out, to));
    if (own.bytes() != 0) {
      NEAR_TRY(group.receive(incoming, from));
      NEAR_TRY(group.reduce(*call.operation, incoming, sum));
    }
    NEAR_TRY(group.finish_all());
  }
  return group.copy(sum, Buffer{call.receive.address, own.count, &type});
}

} // namespace near::coll
