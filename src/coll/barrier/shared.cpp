// Barrier in the area: every rank raises its flag and looks at all others. Cost: one cache line to each rank, at the same
// time; one wait.
#include "coll/algorithms.h"

namespace near::coll {

Result barrier_shared(CollectiveGroup& group, const Call& call) { return meet(group, call); }

} // namespace near::coll
