// Allgather by recursive doubling. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19 (2005). Cost: log2 p alpha + n (p-1) beta, n being one block.
// The group's size is a power of two.
#include "coll/algorithms.h"

namespace near::coll {

Result allgather_recursive_doubling(CollectiveGroup& group, const Call& call) {
  const int rank = group.rank(), size = group.size();
  NEAR_TRY(group.copy(call.send, block(call.receive, rank)));
  for (int distance = 1; distance < size; distance *= 2) {
    const int partner = rank ^ distance;
    // Both hold the blocks of their group of `distance` ranks.
    NEAR_TRY(group.send_receive(block(call.receive, rank & -distance, distance), partner,
                                block(call.receive, partner & -distance, distance), partner));
  }
  return {};
}

} // namespace near::coll
