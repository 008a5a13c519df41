// P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of
// Parallel and Distributed Computing 69 (2009). Each half costs (p-1) alpha + n (p-1)/p beta.
#include "coll/ring.h"

namespace near::coll {

Result ring_reduce_scatter(CollectiveGroup& group, const Operation& operation, const Buffer& own,
                           const Buffer& vector) {
  const int rank = group.rank(), size = group.size();
  if (size == 1) return group.copy(own, vector);
  const int left = (rank - 1 + size) % size, right = (rank + 1) % size;
  const bool in_place = own.address == vector.address;
  Buffer scratch;
  if (in_place) NEAR_TRY(group.scratch((vector.count + size - 1) / size, *vector.type, scratch));
  // Slice s starts at rank s + 1 and collects a contribution at each stop until it reaches rank s. It arrives where it
  // stays, unless this rank's contribution lies there.
  for (int round = 0; round < size - 1; ++round) {
    const int leaves = (rank - 1 - round + size) % size, grows = (rank - 2 - round + 2 * size) % size;
    const Buffer mine = ring_slice(own, grows, size), growing = ring_slice(vector, grows, size);
    const Buffer incoming = in_place ? Buffer{scratch.address, growing.count, growing.type} : growing;
    NEAR_TRY(group.send_receive(ring_slice(round == 0 ? own : vector, leaves, size), right, incoming, left));
    NEAR_TRY(in_place ? group.reduce(operation, incoming, growing) : group.reduce(operation, mine, growing));
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
