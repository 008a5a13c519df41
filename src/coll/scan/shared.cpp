// Scans in the area: every rank publishes its vector, and reduces those of lower ranks. Cost: (r + 2) n beta + r n gamma
// at rank r, and one wait for each chunk; so for few ranks only.
#include "coll/shared/reduction.h"

namespace near::coll {

Result scan_shared(CollectiveGroup& group, const Call& call) { return fold_up_to(group, call, group.rank()); }
Result exscan_shared(CollectiveGroup& group, const Call& call) {
  return fold_up_to(group, call, group.rank() - 1);
}

} // namespace near::coll
