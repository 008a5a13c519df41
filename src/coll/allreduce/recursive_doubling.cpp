// Allreduce by recursive doubling. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19 (2005). Cost: log2 p (alpha + n beta + n gamma) for a power
// of two, two messages more otherwise.
#include "coll/algorithms.h"
#include "pattern/doubling.h"

namespace near::coll {
namespace {

/// Both sides of an exchange compute lower op higher, so the result has the same bits everywhere.
struct DoublingVerbs {
  CollectiveGroup& group;
  const Call& call;
  Partial& partial;

  Result give(int to) { return group.send(call.send, to); }
  Result take(int from) { return group.receive(call.receive, from); }
  Result absorb(int from) {
    Buffer incoming;
    NEAR_TRY(partial.make_incoming(incoming));
    NEAR_TRY(group.receive(incoming, from));
    return add(from);
  }
  Result exchange(int partner) {
    Buffer incoming;
    NEAR_TRY(partial.make_incoming(incoming));
    NEAR_TRY(group.send_receive(partial.value(), partner, incoming, partner));
    return add(partner);
  }
  Result pass(int to) { return group.send(partial.value(), to); }
  Result add(int of) { return of < group.rank() ? partial.absorb_lower() : partial.absorb_higher(); }
};

} // namespace

Result allreduce_recursive_doubling(CollectiveGroup& group, const Call& call) {
  const pattern::Doubling own(group.rank(), group.size());
  Partial partial(group, *call.operation, call.send, call.receive.address);
  NEAR_TRY(pattern::double_up(own, DoublingVerbs{group, call, partial}));
  return own.rests() ? Result{} : partial.settle();
}

} // namespace near::coll
