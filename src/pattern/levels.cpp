// See levels.h.
#include "pattern/levels.h"

#include "pattern/chain.h"
#include "segment/reserve.h"

namespace near::pattern {
namespace {

/// Collects the phases of one call.
class Phases {
public:
  Phases(const Facts& call, const Here& here) : call_(call), here_(here) {}

  void on_machine(Collective collective, MPI_Count bytes, int times = 1) {
    if (here_.ranks == 1) return;
    Facts facts = common(collective, bytes);
    facts.size = here_.ranks;
    facts.nodes = here_.nodes;
    // A schedule has one area, so recorded phases are messages (coll/levels.cpp).
    facts.area = facts.reads_memory =
        !call_.recorded && segment::job_has_area(static_cast<std::uint32_t>(here_.ranks));
    made_.push_back({.times = times, .facts = facts});
  }
  void among_leaders(Collective collective, MPI_Count bytes, bool chain = false) {
    Facts facts = common(collective, bytes);
    facts.size = call_.machines;
    set_among_leaders(facts);
    made_.push_back({.among_leaders = true, .chain = chain, .facts = facts});
  }
  std::vector<Phase> take() { return std::move(made_); }

private:
  Facts common(Collective collective, MPI_Count bytes) const {
    return {.collective = collective,
            .bytes = bytes,
            .commutative = call_.commutative,
            .recorded = call_.recorded,
            .shared_processors = call_.shared_processors,
            .elementwise = call_.elementwise};
  }

  const Facts& call_;
  const Here& here_;
  std::vector<Phase> made_;
};

} // namespace

void add_machines(Facts& facts, const Machines& machines) {
  facts.machines = machines.count();
  facts.most_on_machine = machines.most_ranks();
  facts.machines_in_order = machines.in_order();
  facts.machines_equal = machines.are_equal();
}

std::vector<Phase> phases_of(const Facts& call, const Here& here) {
  using enum Collective;
  Phases phases(call, here);
  const MPI_Count bytes = call.bytes, all = bytes * call.size;
  switch (call.collective) {
  case barrier:
    phases.on_machine(reduce, 1);
    phases.among_leaders(barrier, 0);
    phases.on_machine(broadcast, 1);
    break;
  case broadcast:
    if (is_for_chain(bytes, call.machines, call.recorded)) {
      phases.among_leaders(broadcast, bytes, true);
      phases.on_machine(broadcast, chunk_bytes, chunks_of_chain(bytes));
      break;
    }
    phases.among_leaders(broadcast, bytes);
    phases.on_machine(broadcast, bytes);
    break;
  case reduce:
    phases.on_machine(reduce, bytes);
    phases.among_leaders(reduce, bytes);
    break;
  case allreduce:
    phases.on_machine(reduce, bytes);
    phases.among_leaders(allreduce, bytes);
    phases.on_machine(broadcast, bytes);
    break;
  case gather:
    phases.on_machine(gather, bytes);
    phases.among_leaders(gatherv, 0);
    break;
  case allgather:
    phases.on_machine(gather, bytes);
    if (call.machines_equal)
      phases.among_leaders(allgather, bytes * call.most_on_machine);
    else
      phases.among_leaders(allgatherv, all);
    phases.on_machine(broadcast, all);
    break;
  case alltoall:
    phases.on_machine(gather, all);
    if (call.machines_equal)
      phases.among_leaders(alltoall, bytes * call.most_on_machine * call.most_on_machine);
    else
      phases.among_leaders(alltoallv, 0);
    phases.on_machine(scatter, all);
    break;
  default: break; // has no levels
  }
  return phases.take();
}

} // namespace near::pattern
