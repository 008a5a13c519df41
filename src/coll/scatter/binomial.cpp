// Scatter down a binomial tree, for short blocks. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
// collective communication operations in MPICH", IJHPCA 19 (2005). Cost: ceil(log2 p) alpha + n (p-1) beta, n
// being one block.
#include "coll/algorithms.h"

namespace near::coll {

Result scatter_binomial(CollectiveGroup& group, const Call& call) {
  const BinomialTree tree(group.rank(), group.size(), call.root);
  const int size = group.size();
  if (!tree.is_root() && tree.subtree() == 1) return group.receive(call.receive, tree.parent());

  // Blocks travel packed, in the order of positions, so that every subtree's blocks lie together.
  const MPI_Count bytes = tree.is_root() ? call.send.bytes() : call.receive.bytes();
  const bool in_order =
      tree.is_root() && call.root == 0; // then positions are ranks: straight from the buffer
  Buffer packed;
  if (!in_order) NEAR_TRY(group.scratch_bytes(bytes * tree.subtree(), packed));
  auto blocks = [&](int first, int count) {
    return in_order ? block(call.send, first, count) : byte_range(packed, bytes * first, bytes * count);
  };

  if (!tree.is_root()) {
    NEAR_TRY(group.receive(blocks(0, tree.subtree()), tree.parent()));
  } else if (!in_order) {
    const int after = size - call.root - 1;
    NEAR_TRY(group.copy(block(call.send, call.root + 1, after), blocks(1, after)));
    NEAR_TRY(group.copy(block(call.send, 0, call.root), blocks(1 + after, call.root)));
  }
  for (int distance = tree.reach() / 2; distance >= 1; distance /= 2)
    if (tree.has_child(distance))
      NEAR_TRY(group.send(blocks(distance, tree.subtree_of_child(distance)), tree.child(distance)));

  return group.copy(tree.is_root() ? block(call.send, call.root) : blocks(0, 1), call.receive);
}

} // namespace near::coll
