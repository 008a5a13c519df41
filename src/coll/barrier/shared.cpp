// Barrier in the area, in two forms.
//
// flat  Every rank raises its flag and looks at all others. Cost: one cache line to each rank, at the same time; one wait.
// grid  Every rank raises its flag and looks at those of its row, then does the same with a second flag and its column. Cost:
//       2 sqrt(p) lines and two waits, for many ranks.
#include "coll/algorithms.h"
#include "coll/shared/exchange.h"
#include "pattern/grid.h"

namespace near::coll {

Result barrier_shared(CollectiveGroup& group, const Call& call) { return meet(group, call); }

Result barrier_shared_grid(CollectiveGroup& group, const Call& call) {
  Exchange exchange(group, call, 2);
  const pattern::Grid grid(exchange.size());
  const int rank = exchange.rank(), row = grid.row_of(rank);
  exchange.call().tell_steps_apart();
  NEAR_TRY(exchange.publish(0, [](std::byte*) {}));
  for (int other = grid.first(row); other < grid.first(row) + grid.length(row); ++other)
    NEAR_TRY(exchange.wait(other, 0));
  NEAR_TRY(exchange.relay(0, [](std::byte*) {}));
  for (int other = 0; other < grid.rows(); ++other) NEAR_TRY(exchange.wait(grid.in_column(other, rank), 1));
  exchange.finish(1);
  return {};
}

} // namespace near::coll
