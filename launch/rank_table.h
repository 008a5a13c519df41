// The launcher's accesses to those fields of the rank table that need memory ordering.
#pragma once

#include "segment/segment.h"

namespace near::launch {

// SYNC: rank-phase. Release: a process that sees `dead` may read how the rank ended.
inline void store_phase(const segment::Segment& segment, unsigned rank, segment::Phase phase) {
  segment.entry(rank).phase.store_release(static_cast<std::uint32_t>(phase));
}

/// How the process aborts the job, if it does. Any other value is damage, not a reason to end the job.
inline segment::Abort abort_of(const segment::RankEntry& entry) {
  // SYNC: abort — the code was written before.
  auto how = static_cast<segment::Abort>(entry.aborting.load_acquire());
  bool known = how == segment::Abort::called || how == segment::Abort::failed;
  return known ? how : segment::Abort::none;
}

} // namespace near::launch
