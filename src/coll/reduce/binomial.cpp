// Reduction up a binomial tree. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19 (2005). Cost: ceil(log2 p) (alpha + n beta + n gamma); one
// message more when the operation is not commutative and the root is not rank 0.
#include "coll/algorithms.h"

namespace near::coll {

Result reduce_binomial(CollectiveGroup& group, const Call& call) {
  // Positions follow the ranks' order only in the tree of rank 0: what is not commutative is reduced there
  // first.
  const int top = call.operation->commutative ? call.root : 0;
  const BinomialTree tree(group.rank(), group.size(), top);
  Partial partial(group, *call.operation, call.send, call.receive.address);

  for (int distance = 1; distance < tree.reach() && tree.has_child(distance); distance *= 2) {
    Buffer incoming;
    NEAR_TRY(partial.make_incoming(incoming));
    NEAR_TRY(group.receive(incoming, tree.child(distance)));
    NEAR_TRY(partial.absorb_higher());
  }
  if (!tree.is_root()) NEAR_TRY(group.send(partial.value(), tree.parent()));

  if (top == call.root) return tree.is_root() ? partial.settle() : Result{};
  if (tree.is_root()) return group.send(partial.value(), call.root);
  if (group.rank() == call.root) return group.receive(call.receive, top);
  return {};
}

} // namespace near::coll
