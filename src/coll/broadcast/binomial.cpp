// Broadcast down a binomial tree. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19 (2005). Cost: ceil(log2 p) (alpha + n beta). A parent serves
// one child after the other, so one rank at a time reads it.
#include "coll/algorithms.h"

namespace near::coll {

Result broadcast_binomial(CollectiveGroup& group, const Call& call) {
  const BinomialTree tree(group, call.root);
  if (!tree.is_root()) NEAR_TRY(group.receive(call.receive, tree.parent()));
  // The child with the largest subtree first: it has the longest way to go.
  for (int distance = tree.reach() / 2; distance >= 1; distance /= 2)
    if (tree.has_child(distance)) NEAR_TRY(group.send(call.receive, tree.child(distance)));
  return {};
}

} // namespace near::coll
