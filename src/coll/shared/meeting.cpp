// Algorithms of messages for ranks that have an area: they tell each other what they call before the first message, so
// ranks that call different collectives are told, and none waits for messages that do not come. Cost: one cache line to
// each rank, and one wait.
#include "coll/shared/exchange.h"

namespace near::coll {

Result meet(CollectiveGroup& group, const Call& call) {
  Exchange exchange(group, call, 1);
  NEAR_TRY(exchange.publish(0, [](std::byte*) {}));
  for (int step = 1; step < exchange.size(); ++step)
    NEAR_TRY(exchange.wait((exchange.rank() + step) % exchange.size(), 0));
  exchange.finish(0);
  return {};
}

} // namespace near::coll
