// See levels.h.
#include "coll/levels.h"

namespace near::coll {

RankList Levels::leaders(int root) {
  if (root < 0 || machines_.leaders().find(root) >= 0) return machines_.leaders();
  with_root_ = machines_.leaders_with(root);
  return RankList::of(with_root_);
}

Levels::Levels(CollectiveGroup& whole, const Call& asked, int root)
    : machines_(*whole.machines()),
      // The steps of a recorded call use one area at most (schedule.h), so those of a call in levels use messages.
      here_(whole, machines_.ranks_of(machines_.own()),
            whole.schedule() == nullptr ? whole.area_here() : nullptr, asked),
      across_(whole, leaders(root)) {
  const bool root_is_here = root >= 0 && machines_.index_of(root) == machines_.own();
  leader_ =
      machines_.ranks_of(machines_.own()).find(root_is_here ? root : machines_.leaders()[machines_.own()]);
  across_.set_among_leaders();
}

Result Levels::run_here(Call call) {
  if (here_.size() == 1) return here_.copy(call.send, call.receive);
  call.root = leader_;
  here_.next_phase();
  return run(here_, call);
}

Result Levels::reduce(const Buffer& own, void* result, const Operation& operation) {
  Call call;
  call.collective = Collective::reduce;
  call.send = own;
  call.receive = Buffer{leads() ? result : nullptr, own.count, own.type, own.kind};
  call.operation = &operation;
  return run_here(call);
}

Result Levels::broadcast(const Buffer& buffer) {
  Call call;
  call.collective = Collective::broadcast;
  call.send = call.receive = buffer;
  return run_here(call);
}

Result Levels::gather(const Buffer& own, const Buffer& one) {
  Call call;
  call.collective = Collective::gather;
  call.send = own;
  call.receive = one;
  return run_here(call);
}

Result Levels::scatter(const Buffer& one, const Buffer& own) {
  Call call;
  call.collective = Collective::scatter;
  call.send = one;
  call.receive = own;
  return run_here(call);
}

BlocksByMachine::BlocksByMachine(const Machines& machines, const Buffer& one) {
  for (int machine = 0; machine < machines.count(); ++machine) {
    counts_.push_back(one.count * machines.ranks_of(machine).size());
    displacements_.push_back(one.count * machines.ranks_before(machine));
  }
  blocks_ = {.address = one.address,
             .counts = Counts(counts_.data()),
             .displacements = Counts(displacements_.data()),
             .type = one.type,
             .kind = one.kind};
}

} // namespace near::coll
