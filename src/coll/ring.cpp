// P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of
// Parallel and Distributed Computing 69 (2009). Each half costs (p-1) alpha + n (p-1)/p beta.
#include "coll/ring.h"

namespace near::coll {

Result ring_reduce_scatter(CollectiveGroup& group, const Operation& operation, const Buffer& vector) {
  const int rank = group.rank(), size = group.size();
  if (size == 1) return {};
  const int left = (rank - 1 + size) % size, right = (rank + 1) % size;
  Buffer incoming;
  NEAR_TRY(group.scratch((vector.count + size - 1) / size, *vector.type, incoming));
  // Slice s starts at rank s + 1 and collects a contribution at each stop until it reaches rank s.
  for (int round = 0; round < size - 1; ++round) {
    const Buffer leaving = ring_slice(vector, (rank - 1 - round + size) % size, size);
    const Buffer growing = ring_slice(vector, (rank - 2 - round + 2 * size) % size, size);
    incoming.count = growing.count;
    NEAR_TRY(group.send_receive(leaving, right, incoming, left));
    NEAR_TRY(group.reduce(operation, incoming, growing));
  }
  return {};
}

Result ring_allgather(CollectiveGroup& group, const Buffer& vector) {
  const int rank = group.rank(), size = group.size();
  const int left = (rank - 1 + size) % size, right = (rank + 1) % size;
  for (int round = 0; round < size - 1; ++round)
    NEAR_TRY(group.send_receive(ring_slice(vector, (rank - round + size) % size, size), right,
                                ring_slice(vector, (rank - round - 1 + size) % size, size), left));
  return {};
}

} // namespace near::coll
