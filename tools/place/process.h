// Reads one process, of a job or alone: what it may run on, and where its own pages lie.
#pragma once

#include "place/snapshot.h"
#include "segment/segment.h"

#include <cstdint>
#include <vector>

namespace near::place {

/// Fills in all but the rank's fields of `process`, whose number is given. Fails with Code::gone when it has ended, with
/// Code::refused when it may not be looked at.
Result read_process(const std::vector<os::Node>& nodes, Process& process);

/// Fills in the rank `slot` of the job whose mpiexec is `launcher`. What cannot be read stands in Process::problem.
void read_rank(const segment::Segment& segment, std::int32_t launcher, std::uint32_t slot,
               const std::vector<os::Node>& nodes, Process& process);

} // namespace near::place
