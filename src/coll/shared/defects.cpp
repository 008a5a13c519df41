// What is wrong in an area, told to all of its ranks: they call different collectives, or one has failed. See area.h.
#include "coll/registry.h"
#include "coll/shared/area.h"
#include "datatype/operation.h"

#include <string>

namespace near::coll {
namespace {

constexpr auto no_collective = static_cast<std::uint8_t>(Collective::count);

std::string describe(const Description& description) {
  if (description.collective == no_collective) return "something different";
  std::string text(name_of(static_cast<Collective>(description.collective)));
  if (description.collective != static_cast<std::uint8_t>(Collective::barrier))
    text += base::format(" of {} bytes", description.bytes);
  if (description.operation != 0)
    text += base::format(" ({}), {}", datatype::name_of(static_cast<datatype::Basic>(description.element)),
                         datatype::name_of(static_cast<datatype::Builtin>(description.operation)));
  if (description.root >= 0) text += base::format(", root {}", description.root);
  if (description.root < -1) text += base::format(" (step {})", -description.root);
  return text;
}

} // namespace

void Area::tell_all(const Defect& defect) {
  broken_ = true;
  own().defect = defect;
  // SYNC: area-broken. Release: the defect is written before the others look for it.
  own().broken.store_release(1);
  ring_all();
}

void Area::hear() {
  if (broken_) return;
  for (const AreaMember& member : members_)
    // SYNC: area-broken. Acquire.
    if (member.part->broken.load_acquire() != 0) return tell_all(member.part->defect);
}

Result Area::broken() {
  hear();
  const Defect& found = own().defect;
  if (found.other_rank == gave_up)
    return base::fail(
        MPI_ERR_OTHER,
        "rank {} of this communicator has met an error in {}; the communicator cannot be used for "
        "collectives any more",
        found.rank, describe(found.description));
  if (found.other_rank < 0)
    return base::fail(MPI_ERR_PROC_ABORTED,
                      "rank {} of this communicator has failed; the communicator cannot be used for "
                      "collectives any more",
                      found.rank);
  return base::fail(
      MPI_ERR_OTHER,
      "rank {} of this communicator has called {}, and rank {} {}; the communicator cannot be used for "
      "collectives any more",
      found.rank, describe(found.description), found.other_rank, describe(found.other));
}

Result Area::mismatch(const Description& ours, int rank, const Description& theirs) {
  if (!broken_) tell_all({ours, theirs, rank_in_communicator(rank_), rank_in_communicator(rank)});
  return base::fail(MPI_ERR_OTHER, "rank {} calls {}, but rank {} of the same communicator calls {}",
                    rank_in_communicator(rank_), describe(ours), rank_in_communicator(rank),
                    describe(theirs));
}

Result Area::left_behind(const Description& ours, int rank) {
  if (!broken_)
    tell_all({ours, {.collective = no_collective}, rank_in_communicator(rank_), rank_in_communicator(rank)});
  return base::fail(MPI_ERR_OTHER,
                    "rank {} calls {}, but rank {} of the same communicator has gone on to a different call",
                    rank_in_communicator(rank_), describe(ours), rank_in_communicator(rank));
}

void Area::rank_failed(int rank) {
  if (!broken_) tell_all({.rank = rank});
}

void Area::give_up(const Description& call) {
  if (!broken_) tell_all({.description = call, .rank = rank_in_communicator(rank_), .other_rank = gave_up});
}

void Area::process_failed(const object::ProcessId& process) {
  for (int i = 0; i < size(); ++i) {
    AreaMember& member = members_[static_cast<std::size_t>(i)];
    if (i == rank_ || member.process != process) continue;
    member.finished = ~Number{0}; // it reads no more
    rank_failed(member.rank);
  }
}

} // namespace near::coll
