// What each process of a job is doing, read from outside: for the launcher's reports and `near top`. Works on
// a job that is wedged or dying: nothing here waits for a process.
#pragma once

#include "segment/segment.h"

#include <span>
#include <string>

namespace near::segment {

/// A consistent copy of one state line.
struct Activity {
  std::uint32_t function = 0; ///< 0: outside MPI
  std::uint64_t context = 0;
  std::int32_t peer = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint64_t since_ns = 0; ///< CLOCK_MONOTONIC at the beginning of the wait; 0: it does not wait
  std::uint64_t calls = 0;
  /// False when the process was caught (or killed) in the middle of writing the line: fields may not fit
  /// together.
  bool consistent = true;
};

/// Turns a state line's function number into a name such as "MPI_Recv"; nullptr when it knows none.
using FunctionName = const char* (*)(std::uint32_t function);

/// Whether the process in `slot` has a region that may be read.
bool has_region(const Segment& segment, std::uint32_t slot);
/// The busiest line of the process in `slot`: one that is inside a call if there is one. has_region() must
/// hold.
Activity activity_of(const Segment& segment, std::uint32_t slot);

/// "MPI_Recv from rank 1, tag 7, for 2.3 s" or "its own code"; `now_ns` is CLOCK_MONOTONIC.
std::string activity_text(const Activity& activity, FunctionName name, std::uint64_t now_ns);
/// "launched", "in MPI", ... as people read it.
const char* phase_name(Phase phase);

/// A table with a line for each process of the job: rank, pid, phase, calls, messages and bytes sent,
/// messages that came before their receives, what it does. `descriptor` is the segment's. `pids` are the
/// processes by rank, where the caller knows them better than the rank table, which every process can write.
std::string job_table(const Segment& segment, int descriptor, FunctionName name, std::uint64_t now_ns,
                      std::span<const std::int32_t> pids = {});

} // namespace near::segment
