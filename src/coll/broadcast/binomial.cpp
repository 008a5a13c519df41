// Broadcast down a binomial tree. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19 (2005). Cost: ceil(log2 p) (alpha + n beta). A parent serves
// one child after the other, so one rank at a time reads it.
#include "coll/algorithms.h"

namespace near::coll {

Result broadcast_binomial(CollectiveGroup& group, const Call& call) {
  const BinomialTree tree(group.rank(), group.size(), call.root);
  return pattern::go_down(
      tree, [&] { return group.receive(call.receive, tree.parent()); },
      [&](int distance) { return group.send(call.receive, tree.child(distance)); });
}

} // namespace near::coll
