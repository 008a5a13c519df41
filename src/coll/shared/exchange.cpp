// See exchange.h.
#include "coll/shared/exchange.h"

#include <exception>

namespace near::coll {
namespace {

/// Up to this size, a second chunk costs more than it overlaps. Bytes.
constexpr MPI_Count one_chunk = 16 << 10;
/// Longer data is cut into this many chunks, or into ones of the largest size.
constexpr MPI_Count pipeline_chunks = 4, least_chunk = 8 << 10, largest_chunk = 32 << 10;
/// The same for vectors that ranks reduce, or one publishes (doc/adr/0029).
constexpr MPI_Count vector_chunks = 2, largest_of_vector = slice_bytes;
/// Where ranks share processors, a rank fills as many slices as it has in a turn: eight chunks, or more shorter ones.
constexpr Number most_ahead = 15;
static_assert(most_ahead < ring_depth && most_ahead >= most_slices);

/// Chunks of about `chunk` bytes, and at most `most`.
Chunks cut(MPI_Count total, MPI_Count chunk, MPI_Count unit, MPI_Count most) {
  chunk = std::min((std::min(chunk, total) + 63) / 64 * 64, most / 64 * 64);
  chunk -= chunk % unit;
  return Chunks{total, chunk, static_cast<Number>((total + chunk - 1) / chunk)};
}

/// What the ranks compare: in a phase of a call in levels, the program's call, with the number of the phase unless it has a root.
Description describe(const CollectiveGroup& group, const Call& call) {
  const Call* const asked = group.asked();
  if (asked == nullptr) return describe(call, group.bytes());
  Description made = describe(*asked, group.asked_bytes());
  if (!has_root(asked->collective)) made.root = -1 - group.phase();
  return made;
}

} // namespace

Number chunks_ahead() { return ranks_share_processors() ? most_ahead : 1; }

Chunks chunks_of(MPI_Count total, MPI_Count unit, int parts) {
  if (total == 0) return {};
  MPI_Count chunk = slice_bytes / parts;
  if (!ranks_share_processors() && total * parts > one_chunk)
    chunk = std::clamp(total / pipeline_chunks, least_chunk / parts, largest_chunk / parts);
  return cut(total, chunk, unit, slice_bytes / parts);
}

Chunks chunks_of_vector(MPI_Count total, MPI_Count unit) {
  if (total == 0) return {};
  MPI_Count chunk = slice_bytes;
  if (!ranks_share_processors() && total > one_chunk)
    chunk = std::clamp(total / vector_chunks, least_chunk, largest_of_vector);
  return cut(total, chunk, unit, slice_bytes);
}

Exchange::Exchange(CollectiveGroup& group, const Call& call, Number chunks)
    : schedule_(group.schedule()), ahead_(chunks_ahead()) {
  if (group.area_call() != nullptr) {
    call_ = group.area_call();
    return;
  }
  const Description description = describe(group, call);
  if (is_recorded()) {
    call_ = &schedule_->use_area(*group.area(), description, chunks);
    return;
  }
  exceptions_ = std::uncaught_exceptions();
  call_ = &executed_.emplace(*group.area(), description, chunks);
  call_->begin();
  call_->wait_for_turn();
}

Exchange::~Exchange() {
  if (!executed_) return;
  if (!call_->is_over()) [[unlikely]] {
    // An exception is an error of this rank, of which the others learn in no other way.
    if (std::uncaught_exceptions() > exceptions_) call_->give_up();
    call_->abandon(true);
  }
  call_->end();
}

} // namespace near::coll
