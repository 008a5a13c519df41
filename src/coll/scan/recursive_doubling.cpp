// Inclusive scan by recursive doubling. P. Kogge, H. Stone, "A parallel algorithm for the efficient solution
// of a general class of recurrence equations", IEEE Transactions on Computers C-22 (1973); W. Hillis, G.
// Steele, "Data parallel algorithms", CACM 29 (1986). Cost: ceil(log2 p) (alpha + n beta + n gamma), for any
// p and any associative operation.
#include "coll/algorithms.h"

namespace near::coll {

Result scan_recursive_doubling(CollectiveGroup& group, const Call& call) {
  Partial partial(group, *call.operation, call.send, call.receive.address);
  NEAR_TRY(scan_among(group, partial, 0));
  return partial.settle();
}

Result scan_among(CollectiveGroup& group, Partial& partial, int first) {
  const int rank = group.rank(), size = group.size();
  // Before the round of distance d the value covers the d ranks that end with this one (fewer near `first`).
  for (int distance = 1; first + distance < size; distance *= 2) {
    const bool gives = rank + distance < size, takes = rank - distance >= first;
    Buffer incoming;
    if (takes) NEAR_TRY(partial.make_incoming(incoming));
    if (gives && takes)
      NEAR_TRY(group.send_receive(partial.value(), rank + distance, incoming, rank - distance));
    else if (gives)
      NEAR_TRY(group.send(partial.value(), rank + distance));
    else if (takes)
      NEAR_TRY(group.receive(incoming, rank - distance));
    if (takes) NEAR_TRY(partial.absorb_lower());
  }
  return {};
}

} // namespace near::coll
