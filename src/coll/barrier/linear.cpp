// Barrier through rank 0: all tell it, it tells all. Cost: 2 (p - 1) alpha at rank 0.
//
// Where ranks share processors a message costs little and a wait costs a turn of all ranks on the processor.
// Here each rank waits once, and rank 0 finds all the messages there when its turn comes; dissemination waits
// in each of its rounds (doc/adr/0012).
#include "coll/algorithms.h"

namespace near::coll {

Result barrier_linear(CollectiveGroup& group, const Call&) {
  const Buffer token{nullptr, 0, &byte_type()};
  if (group.rank() != 0) {
    NEAR_TRY(group.send(token, 0));
    return group.receive(token, 0);
  }
  for (int rank = 1; rank < group.size(); ++rank) NEAR_TRY(group.receive(token, rank));
  for (int rank = 1; rank < group.size(); ++rank) NEAR_TRY(group.send(token, rank));
  return {};
}

} // namespace near::coll
