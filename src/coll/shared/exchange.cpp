// See exchange.h.
#include "coll/shared/exchange.h"

namespace near::coll {
namespace {

/// Up to this size, a second chunk costs more than it overlaps. Bytes.
constexpr MPI_Count one_chunk = 16 << 10;
/// Longer data is cut into this many chunks, or into ones of the largest size.
constexpr MPI_Count pipeline_chunks = 4, least_chunk = 8 << 10, largest_chunk = 32 << 10;

} // namespace

Chunks chunks_of(MPI_Count total, MPI_Count unit, int parts) {
  if (total == 0) return {};
  MPI_Count most = slice_bytes / parts / 64 * 64, chunk = most;
  if (!ranks_share_processors() && total * parts > one_chunk)
    chunk = std::clamp(total / pipeline_chunks, least_chunk / parts, largest_chunk / parts);
  chunk = std::min((std::min(chunk, total) + 63) / 64 * 64, most);
  chunk -= chunk % unit;
  return Chunks{total, chunk, static_cast<Number>((total + chunk - 1) / chunk)};
}

Exchange::Exchange(CollectiveGroup& group, const Call& call, Number chunks)
    : area_(*group.area()), count_(chunks),
      first_(area_.begin(describe(call, facts_of(call, group.size()).bytes), chunks)),
      ahead_(ranks_share_processors() ? ring_depth - 1 : 1) {}

Exchange::~Exchange() {
  if (finished_ != count_) area_.finish(number(count_ - 1));
  while (published_ < count_) area_.publish_failure(number(published_++)); // only after an error
}

} // namespace near::coll
