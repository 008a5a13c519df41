// Gather up a binomial tree, for short blocks. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
// collective communication operations in MPICH", IJHPCA 19 (2005). Cost: ceil(log2 p) alpha + n (p-1) beta, n
// being one block.
#include "coll/algorithms.h"

namespace near::coll {

Result gather_binomial(CollectiveGroup& group, const Call& call) {
  const BinomialTree tree(group.rank(), group.size(), call.root);
  const int size = group.size();
  if (!tree.is_root() && tree.subtree() == 1) return group.send(call.send, tree.parent());

  // Blocks travel packed, in the order of positions, so that every subtree's blocks lie together.
  const MPI_Count bytes = tree.is_root() ? call.receive.bytes() : call.send.bytes();
  const bool in_order =
      tree.is_root() && call.root == 0; // then positions are ranks: straight into the buffer
  Buffer packed;
  if (!in_order) NEAR_TRY(group.scratch_bytes(bytes * tree.subtree(), packed));
  auto blocks = [&](int first, int count) {
    return in_order ? block(call.receive, first, count) : byte_range(packed, bytes * first, bytes * count);
  };

  if (!tree.is_root()) NEAR_TRY(group.copy(call.send, blocks(0, 1)));
  for (int distance = 1; distance < tree.reach() && tree.has_child(distance); distance *= 2)
    NEAR_TRY(group.receive(blocks(distance, tree.subtree_of_child(distance)), tree.child(distance)));
  if (!tree.is_root()) return group.send(blocks(0, tree.subtree()), tree.parent());

  NEAR_TRY(group.copy(call.send, block(call.receive, call.root)));
  if (in_order) return {};
  // Positions 1, 2, ... are the ranks after the root, and then those from 0 on.
  const int after = size - call.root - 1;
  NEAR_TRY(group.copy(blocks(1, after), block(call.receive, call.root + 1, after)));
  return group.copy(blocks(1 + after, call.root), block(call.receive, 0, call.root));
}

} // namespace near::coll
