// Reads one process, of a job or on its own: where it may run, and where its own pages lie.
#pragma once

#include "place/snapshot.h"
#include "segment/segment.h"

#include <cstdint>
#include <vector>

namespace near::place {

/// Reads the process whose number is in `process`; sets everything except the rank's fields. Fails with
/// Code::gone if it has ended, and with Code::refused if it may not be inspected.
Result read_process(const std::vector<os::Node>& nodes, Process& process);

/// Reads what is known about `rank` in the job whose mpiexec is `launcher`. If it cannot be read,
/// Process::problem says why.
void read_rank(const segment::Segment& segment, std::int32_t launcher, std::uint32_t rank,
               const std::vector<os::Node>& nodes, Process& process);

} // namespace near::place
