// Publishes the machine to ranks and tools, in the job's segment (segment/machine.h).
#pragma once

#include "segment/segment.h"
#include "topo/machine.h"

namespace near::launch {

/// Writes processors, nodes and distances into the segment. Returns false if there is no room for them;
/// ranks and tools then do without.
bool publish(const topo::Machine& machine, segment::Segment& segment);

/// Adds the machine's devices. `published` is the machine that was passed to publish().
void publish_devices(const topo::Machine& machine, const topo::Machine& published,
                     const segment::Segment& segment);

/// The nearest node with each kind of memory, for a rank on these processors.
segment::NearestNodes nearest_nodes(const topo::Machine& machine, const os::CpuSet& cpus);

} // namespace near::launch
