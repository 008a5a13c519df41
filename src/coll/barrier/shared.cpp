// Barrier in the area: every rank raises its flag and looks at all others. Cost: one cache line to each rank, at the same
// time; one wait.
#include "coll/shared/exchange.h"

namespace near::coll {

Result barrier_shared(CollectiveGroup& group, const Call& call) {
  Exchange exchange(group, call, 1);
  NEAR_TRY(exchange.publish(0, [](std::byte*) {}));
  for (int step = 1; step < exchange.size(); ++step)
    NEAR_TRY(exchange.wait((exchange.rank() + step) % exchange.size(), 0));
  exchange.finish(0);
  return {};
}

} // namespace near::coll
