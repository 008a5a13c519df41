// Locates the pages of a job's segment, part by part.
#pragma once

#include "place/snapshot.h"
#include "segment/segment.h"

namespace near::place {

/// Adds the parts of the segment that have pages. `descriptor` is the segment's; the processes in
/// `snapshot` have been read.
void locate_segment(const segment::Segment& segment, int descriptor, Snapshot& snapshot);

} // namespace near::place
