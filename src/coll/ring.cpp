// P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of
// Parallel and Distributed Computing 69 (2009). Each half costs (p-1) alpha + n (p-1)/p beta.
#include "coll/ring.h"

namespace near::coll {

Result ring_reduce_scatter(CollectiveGroup& group, const Operation& operation, const Buffer& own,
                           const Buffer& vector) {
  const int size = group.size();
  if (size == 1) return group.copy(own, vector);
  const pattern::Ring ring(group.rank(), size);
  const bool in_place = own.address == vector.address;
  Buffer scratch;
  if (in_place) NEAR_TRY(group.scratch((vector.count + size - 1) / size, *vector.type, scratch));
  // A slice arrives where it stays, unless this rank's contribution lies there.
  for (int round = 0; round < ring.rounds(); ++round) {
    const auto [leaves, grows] = ring.reducing(round);
    const Buffer mine = ring_slice(own, grows, size), growing = ring_slice(vector, grows, size);
    const Buffer incoming = in_place ? Buffer{scratch.address, growing.count, growing.type} : growing;
    NEAR_TRY(group.send_receive(ring_slice(round == 0 ? own : vector, leaves, size), ring.right(), incoming,
                                ring.left()));
    NEAR_TRY(in_place ? group.reduce(operation, incoming, growing) : group.reduce(operation, mine, growing));
  }
  return {};
}

Result ring_allgather(CollectiveGroup& group, const Buffer& vector) {
  const int size = group.size();
  const pattern::Ring ring(group.rank(), size);
  for (int round = 0; round < ring.rounds(); ++round) {
    const auto [leaves, arrives] = ring.gathering(round);
    NEAR_TRY(group.send_receive(ring_slice(vector, leaves, size), ring.right(),
                                ring_slice(vector, arrives, size), ring.left()));
  }
  return {};
}

} // namespace near::coll
