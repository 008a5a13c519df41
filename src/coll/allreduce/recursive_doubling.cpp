// Allreduce by recursive doubling. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19 (2005). Cost: log2 p (alpha + n beta + n gamma) for a power
// of two, two messages more otherwise.
#include "coll/algorithms.h"

namespace near::coll {

Result allreduce_recursive_doubling(CollectiveGroup& group, const Call& call) {
  const int rank = group.rank(), size = group.size();
  int power = 1;
  while (power * 2 <= size) power *= 2;

  Partial partial(group, *call.operation, call.send, call.receive.address);
  Buffer incoming;

  // Fold: of the first 2 (size - power) ranks each even one gives its vector to its right neighbour and
  // rests. The acting ranks are then a power of two, and still stand in rank order.
  const int folded = 2 * (size - power);
  const bool rests = rank < folded && rank % 2 == 0;
  if (rests) {
    NEAR_TRY(group.send(call.send, rank + 1));
    return group.receive(call.receive, rank + 1);
  }
  if (rank < folded) {
    NEAR_TRY(partial.make_incoming(incoming));
    NEAR_TRY(group.receive(incoming, rank - 1));
    NEAR_TRY(partial.absorb_lower());
  }
  const int acting = rank < folded ? rank / 2 : rank - folded / 2;
  auto rank_of = [&](int actor) { return actor < folded / 2 ? 2 * actor + 1 : actor + folded / 2; };

  // Neighbouring groups of 1, 2, 4, ... exchange what they have: both sides compute lower op higher, so the
  // result has the same bits everywhere.
  for (int distance = 1; distance < power; distance *= 2) {
    const int partner = acting ^ distance;
    NEAR_TRY(partial.make_incoming(incoming));
    NEAR_TRY(group.send_receive(partial.value(), rank_of(partner), incoming, rank_of(partner)));
    NEAR_TRY(partner < acting ? partial.absorb_lower() : partial.absorb_higher());
  }

  if (rank < folded) NEAR_TRY(group.send(partial.value(), rank - 1));
  return partial.settle();
}

} // namespace near::coll
