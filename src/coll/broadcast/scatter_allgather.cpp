// Broadcast of long messages: scatter the pieces, then collect them around a ring. M. Barnett, S. Gupta, D.
// Payne, L. Shuler, R. van de Geijn, J. Watts, "Interprocessor collective communication library (InterCom)",
// SHPCC 1994. Cost: (ceil(log2 p) + p - 1) alpha + 2 n (p-1)/p beta. In the ring each rank is read by one
// other.
#include "coll/algorithms.h"
#include "pattern/ring.h"

namespace near::coll {

Result broadcast_scatter_allgather(CollectiveGroup& group, const Call& call) {
  const BinomialTree tree(group.rank(), group.size(), call.root);
  const int size = group.size(), own = tree.position();
  const MPI_Count bytes = call.receive.bytes();

  // Pieces are cut by packed bytes, because ranks may describe the same signature by unlike types.
  Buffer packed;
  const bool contiguous = call.receive.is_contiguous();
  if (contiguous)
    packed = Buffer{call.receive.contiguous_start(), bytes, &byte_type()};
  else
    NEAR_TRY(group.scratch_bytes(bytes, packed));
  if (!contiguous && tree.is_root()) NEAR_TRY(group.copy(call.receive, packed));

  auto pieces = [&](int first, int count) {
    const pattern::Part part = pattern::pieces_of(bytes, first, count, size);
    return byte_range(packed, part.begin, part.count);
  };

  // Scatter: a subtree's pieces lie together, because they are numbered by position in the tree.
  NEAR_TRY(pattern::go_down(
      tree, [&] { return group.receive(pieces(own, tree.subtree()), tree.parent()); },
      [&](int distance) {
        return group.send(pieces(own + distance, tree.subtree_of_child(distance)), tree.child(distance));
      }));

  // Collect: pass on what the left neighbour gave in the round before.
  const pattern::Ring ranks(group.rank(), size), positions(own, size);
  for (int round = 0; round < positions.rounds(); ++round) {
    const auto [leaves, arrives] = positions.gathering(round);
    NEAR_TRY(group.send_receive(pieces(leaves, 1), ranks.right(), pieces(arrives, 1), ranks.left()));
  }

  if (!contiguous && !tree.is_root()) NEAR_TRY(group.copy(packed, call.receive));
  return {};
}

} // namespace near::coll
