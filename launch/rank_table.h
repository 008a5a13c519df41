// The launcher's side of the rank table's words that have an order.
#pragma once

#include "segment/segment.h"

namespace near::launch {

// SYNC: rank-phase. Release: whoever sees `dead` may read how.
inline void store_phase(const segment::Segment& segment, unsigned rank, segment::Phase phase) {
  segment.entry(rank).phase.store_release(static_cast<std::uint32_t>(phase));
}

/// How the process ends its job, if it does; what is neither is damage, and no reason to end it.
inline segment::Abort abort_of(const segment::RankEntry& entry) {
  // SYNC: abort — the code was written before.
  auto how = static_cast<segment::Abort>(entry.aborting.load_acquire());
  bool known = how == segment::Abort::called || how == segment::Abort::failed;
  return known ? how : segment::Abort::none;
}

} // namespace near::launch
