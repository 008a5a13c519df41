// Allreduce in two levels: to the leader of each machine, among the leaders, and from each to its machine. Cost: that of an
// allreduce among the leaders, and of a reduce and a broadcast on a machine.
#include "coll/levels.h"

namespace near::coll {

Result allreduce_by_machine(CollectiveGroup& group, const Call& call) {
  Levels levels(group, call);
  NEAR_TRY(levels.reduce(call.send, call.receive.address, *call.operation));
  if (levels.leads()) {
    Call among = call;
    among.send = call.receive;
    among.in_place = true;
    NEAR_TRY(run(levels.across(), among));
  }
  return levels.broadcast(call.receive);
}

} // namespace near::coll
