// Reduce-scatter as a reduction to rank 0 that hands out the parts: for operations that are not commutative,
// and for short vectors. Cost: 2 ceil(log2 p) alpha and more, n ceil(log2 p) (beta + gamma), n being the
// whole vector.
#include "coll/algorithms.h"
#include "coll/reduce_scatter/partition.h"

namespace near::coll {

Result reduce_scatter_via_root(CollectiveGroup& group, const Call& call) {
  const int rank = group.rank(), size = group.size();
  const Partition partition(call, size);
  const Buffer own = partition.part(rank);

  Buffer whole;
  if (rank == 0) NEAR_TRY(group.scratch(partition.whole().count, *own.type, whole));
  Call reduction;
  reduction.collective = Collective::reduce;
  reduction.send = partition.whole();
  reduction.receive = whole;
  reduction.operation = call.operation;
  NEAR_TRY(reduce_binomial(group, reduction));

  const Buffer result{call.receive.address, own.count, own.type};
  if (rank != 0) return own.bytes() != 0 ? group.receive(result, 0) : Result{};
  for (int to = 1; to < size; ++to) {
    const Buffer part = partition.part(whole, to);
    if (part.bytes() == 0) continue;
    NEAR_TRY(group.start_send(part, to));
    NEAR_TRY(group.finish_until(3)); // few at a time read one process
  }
  NEAR_TRY(group.copy(partition.part(whole, 0), result));
  return group.finish_all();
}

} // namespace near::coll
