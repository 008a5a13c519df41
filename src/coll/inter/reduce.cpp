// Reductions between two groups: each group reduces to its leader, in rank order; what crosses is the result.
// Cost: about that of a reduction inside the larger group, one message across, and what spreads the result.
#include "coll/algorithms.h"
#include "coll/inter/inter.h"
#include "coll/reduce_scatter/partition.h"

namespace near::coll {
namespace {

/// The own group's reduction of `own` at its leader.
Result reduce_to_leader(Groups& groups, const Operation& operation, const Buffer& own, Buffer& result) {
  Call inside;
  inside.collective = Collective::reduce;
  inside.operation = &operation;
  inside.send = own;
  if (groups.own.rank() == 0) NEAR_TRY(groups.own.scratch(own.count, *own.type, result));
  inside.receive = result;
  return reduce_binomial(groups.own, inside);
}

} // namespace

Result inter_reduce(Groups& groups, const Call& call) {
  if (call.root == MPI_PROC_NULL) return {};
  if (call.root == MPI_ROOT) return groups.across.receive(call.receive, 0);
  Buffer result;
  NEAR_TRY(reduce_to_leader(groups, *call.operation, call.send, result));
  return groups.own.rank() == 0 ? groups.across.send(result, call.root) : Result{};
}

Result inter_allreduce(Groups& groups, const Call& call) {
  Buffer result;
  NEAR_TRY(reduce_to_leader(groups, *call.operation, call.send, result));
  if (groups.own.rank() == 0) NEAR_TRY(groups.across.send_receive(result, 0, call.receive, 0));
  return broadcast_binomial(groups.own, call);
}

Result inter_reduce_scatter(Groups& groups, const Call& call) {
  // Both groups reduce vectors of one length, and each cuts the other's result as it likes.
  const int rank = groups.own.rank(), size = groups.own.size();
  const Partition partition(call, size);
  Buffer ours, theirs;
  NEAR_TRY(reduce_to_leader(groups, *call.operation, partition.whole(), ours));
  const Buffer own = partition.part(rank), result{call.receive.address, own.count, own.type};
  if (rank != 0) return result.bytes() != 0 ? groups.own.receive(result, 0) : Result{};
  NEAR_TRY(groups.own.scratch(partition.whole().count, *own.type, theirs));
  NEAR_TRY(groups.across.send_receive(ours, 0, theirs, 0));
  for (int to = 1; to < size; ++to) {
    const Buffer part = partition.part(theirs, to);
    if (part.bytes() == 0) continue;
    NEAR_TRY(groups.own.start_send(part, to));
    NEAR_TRY(groups.own.finish_until(3)); // few at a time read one process
  }
  NEAR_TRY(groups.own.copy(partition.part(theirs, 0), result));
  return groups.own.finish_all();
}

} // namespace near::coll
