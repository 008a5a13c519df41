// Barrier by dissemination. D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization",
// International Journal of Parallel Programming 17 (1988).
// Cost: ceil(log2 p) alpha, for any p.
#include "coll/algorithms.h"

namespace near::coll {

Result barrier_dissemination(CollectiveGroup& group, const Call&) {
  const int rank = group.rank(), size = group.size();
  const Buffer token{nullptr, 0, &byte_type()};
  // After the round of distance d each rank has heard, directly or not, from the 2d - 1 ranks before it.
  for (int distance = 1; distance < size; distance *= 2)
    NEAR_TRY(group.send_receive(token, (rank + distance) % size, token, (rank - distance + size) % size));
  return {};
}

} // namespace near::coll
