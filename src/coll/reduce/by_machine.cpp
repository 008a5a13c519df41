// Reduce in two levels: to the leader of each machine, and from the leaders to the root, which leads its machine. Cost: that of a
// reduce among the leaders, and of one on a machine.
#include "coll/levels.h"

namespace near::coll {

Result reduce_by_machine(CollectiveGroup& group, const Call& call) {
  Levels levels(group, call, call.root);
  const bool is_root = group.rank() == call.root;
  Buffer sum = call.send;
  if (is_root) {
    sum.address = call.receive.address;
  } else if (levels.leads() && levels.here().size() > 1) {
    NEAR_TRY(group.scratch(call.send.count, *call.send.type, sum));
  }
  NEAR_TRY(levels.reduce(call.send, sum.address, *call.operation));
  if (!levels.leads()) return {};
  Call among = call;
  among.send = sum;
  among.root = levels.machines().index_of(call.root);
  return run(levels.across(), among);
}

} // namespace near::coll
