// Broadcast of long messages: scatter the pieces, then collect them around a ring. M. Barnett, S. Gupta, D.
// Payne, L. Shuler, R. van de Geijn, J. Watts, "Interprocessor collective communication library (InterCom)",
// SHPCC 1994. Cost: (ceil(log2 p) + p - 1) alpha + 2 n (p-1)/p beta. In the ring each rank is read by one
// other.
#include "coll/algorithms.h"

#include <algorithm>

namespace near::coll {

Result broadcast_scatter_allgather(CollectiveGroup& group, const Call& call) {
  const BinomialTree tree(group, call.root);
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

  const MPI_Count bytes_each = (bytes + size - 1) / size;
  auto pieces = [&](int first, int count) {
    MPI_Count begin = std::min(bytes, bytes_each * first);
    return byte_range(packed, begin, std::min(bytes, bytes_each * (first + count)) - begin);
  };

  // Scatter: a subtree's pieces lie together, because they are numbered by position in the tree.
  if (!tree.is_root()) NEAR_TRY(group.receive(pieces(own, tree.subtree()), tree.parent()));
  for (int distance = tree.reach() / 2; distance >= 1; distance /= 2)
    if (tree.has_child(distance))
      NEAR_TRY(group.send(pieces(own + distance, tree.subtree_of_child(distance)), tree.child(distance)));

  // Collect: pass on what the left neighbour gave in the round before.
  const int left = (group.rank() - 1 + size) % size, right = (group.rank() + 1) % size;
  for (int round = 0; round < size - 1; ++round)
    NEAR_TRY(group.send_receive(pieces((own - round + size) % size, 1), right,
                                pieces((own - round - 1 + size) % size, 1), left));

  if (!contiguous && !tree.is_root()) NEAR_TRY(group.copy(packed, call.receive));
  return {};
}

} // namespace near::coll
